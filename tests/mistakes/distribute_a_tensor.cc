// What is distributed is a dataset.
// EXPECT: no matching function | no matching member function
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.experimental_distribute_dataset(at::ones({4, 2}));  // here
}
