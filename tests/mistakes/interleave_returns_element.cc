// The function makes a dataset.
// EXPECT: this function on elements returns a data::Dataset
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).interleave([](int64_t x) { return x; });  // here
}
