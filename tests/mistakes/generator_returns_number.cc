// Where the data ends is not said.
// EXPECT: a generator function returns a std::optional of the next element
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::from_generator([]() -> int { return 1; });  // here
}
