// A learning rate is no optimizer.
// EXPECT: compile's .optimizer is a name
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  const tf::keras::Sequential model({tf::keras::layers::Dense(1)});
  model.compile({.optimizer = 0.1});  // here
}
