// Labels as they come from a file of integers.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  tf::keras::losses::SparseCategoricalCrossentropy loss({.from_logits = true});
  strategy.run([&](const Tensor& logits,
                   const Tensor& labels) { return loss(labels.to(tf::int32), logits); },
               batch);
}
