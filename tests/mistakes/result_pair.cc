// A pair of results, bound to two names.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto [sums, counts] = strategy.run(
      [](const Tensor& x, const Tensor& y) { return std::pair(x.sum(), y.numel()); }, batch);
  Tensor sum = strategy.reduce(ReduceOp::SUM, sums);
  Tensor count = strategy.reduce(ReduceOp::SUM, counts);
}
