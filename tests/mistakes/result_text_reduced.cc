// Text has no sum.
// EXPECT: no matching function | no matching member function
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto names =
      strategy.run([](const Tensor& x, const Tensor& y) { return std::string("x"); }, batch);
  strategy.reduce(ReduceOp::SUM, names);  // here
}
