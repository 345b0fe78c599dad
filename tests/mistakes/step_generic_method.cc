// One `auto` is a Structure, which has no methods of tensors.
// EXPECT: has no member named ‘sum’ | no member named 'sum'
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](auto images) { return images.sum(); }, batch);  // here
}
