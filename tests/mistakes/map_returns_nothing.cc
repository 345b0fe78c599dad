// The `return` was forgotten.
// EXPECT: a function on elements returns an element: this one returns nothing
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).map([](const Tensor& x) { x + 1; });  // here
}
