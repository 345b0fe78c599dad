// The loop that the message above suggests.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto it = dist.iterator();
  while (auto next = it.next()) strategy.run([](const Tensor& x, const Tensor& y) {}, *next);
}
