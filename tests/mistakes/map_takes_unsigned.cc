// There are no tensors of size_t.
// EXPECT: a function's parameters are Structure, Tensor
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).map([](size_t x) { return static_cast<int64_t>(x) + 1; });  // here
}
