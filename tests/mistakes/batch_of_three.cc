// The number of names is that of the type: two.
// EXPECT: 3 names provided for structured binding | decomposes into 2 elements
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  for (auto [x, y, weights] : dist) std::cout << x;  // here
}
