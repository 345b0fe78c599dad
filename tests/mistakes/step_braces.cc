// Options in braces, in another order than they are declared in.
// EXPECT: designator order for field | field designator
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  tf::keras::losses::SparseCategoricalCrossentropy loss(
      {.reduction = tf::keras::losses::Reduction::NONE, .from_logits = true});  // here
}
