// A parameter that moves the batch.
// EXPECT: is a reference to something that it could change
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](Tensor&& x, Tensor&& y) { return x + y; }, batch);  // here
}
