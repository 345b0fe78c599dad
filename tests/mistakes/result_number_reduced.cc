// Steps often return item<double>().
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto losses =
      strategy.run([](const Tensor& x, const Tensor& y) { return x.sum().item<double>(); }, batch);
  double total = strategy.reduce(ReduceOp::SUM, losses).item<double>();
}
