// A step without a result has nothing to reduce.
// EXPECT: invalid use of void expression | no matching member function
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto step = [](const Tensor& x, const Tensor& y) { x.sum(); };
  strategy.reduce(ReduceOp::SUM, strategy.run(step, batch));  // here
}
