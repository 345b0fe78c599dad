// Python's functions have a name, a lambda has none.
// EXPECT: a function needs a name for the logs
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  const tf::keras::Sequential model({tf::keras::layers::Dense(1)});
  const auto error = [](const Tensor& y_true, const Tensor& y_pred) { return y_true - y_pred; };
  model.compile({.loss = "mse", .metrics = {"mae", error}});  // here
}
