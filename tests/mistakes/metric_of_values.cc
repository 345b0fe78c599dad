// Keras's Mean as a metric of compile.
// EXPECT: a metric of compile is a name
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  const tf::keras::Sequential model({tf::keras::layers::Dense(1)});
  model.compile({.loss = "mse", .metrics = {tf::keras::metrics::Mean()}});  // here
}
