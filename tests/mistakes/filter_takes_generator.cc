// Only maps are random.
// EXPECT: only a map's function may ask for a random::Generator
#include "given.h"

using tf::random::Generator;

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).filter([](Generator& random, int64_t x) { return x > 0; });  // here
}
