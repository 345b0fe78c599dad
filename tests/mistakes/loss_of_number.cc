// An option of compile that is no loss: the line says what is.
// EXPECT: a loss of compile is a name
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  const tf::keras::Sequential model({tf::keras::layers::Dense(1)});
  model.compile({.loss = 3});  // here
}
