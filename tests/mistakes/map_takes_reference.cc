// A map that would write into its input.
// EXPECT: is a reference to something that it could change
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).map([](Tensor& x) { return x.add_(1); });  // here
}
