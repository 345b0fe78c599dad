// A class that is no element.
// EXPECT: a function on elements returns a Structure, Tensor
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).map([](int64_t x) { return std::make_unique<int64_t>(x); });  // here
}
