// Components are reduced before one computes with them.
// EXPECT: no match for ‘operator/’ | invalid operands to binary expression
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto losses = strategy.run([](const Tensor& x, const Tensor& y) { return x.sum(); }, batch);
  Tensor mean = losses / 2;  // here
}
