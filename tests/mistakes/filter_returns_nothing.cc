// The `return` of a predicate was forgotten.
// EXPECT: a function on elements returns an element: this one returns nothing
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).filter([](auto x) { x < 2; });  // here
}
