// With one replica, a result is read as a number.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto losses = strategy.run([](const Tensor& x, const Tensor& y) { return x.sum(); }, batch);
  double loss = losses.item<double>();
}
