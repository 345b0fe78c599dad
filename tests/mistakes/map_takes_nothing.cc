// A map without parameters.
// EXPECT: a function on elements takes at least one argument
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).map([] { return 1; });  // here
}
