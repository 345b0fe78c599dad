// One metric for all outputs, or one for each, needs no list; nor does a callback.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  const tf::keras::Sequential model({tf::keras::layers::Dense(1)});
  const auto error = [](const Tensor& y_true, const Tensor& y_pred) { return y_true - y_pred; };
  const tf::keras::metrics::MeanAbsoluteError mae;
  model.compile({.loss = "mse", .metrics = "mae"});
  model.compile({.loss = "mse", .metrics = mae, .weighted_metrics = {mae, "mse"}});
  model.compile({.loss = "mse", .metrics = {{"price", "mae"}, {"kind", mae}}});
  model.compile({.loss = "mse", .metrics = {{"price", {mae}}, {"kind", {"mse", mae}}}});
  model.compile({.loss = "mse", .metrics = {"mse", {"error", error}}});
  model.compile({.loss = "mse", .metrics = {{"error", error}}});
  model.compile({.loss = {{"price", "mse"}}, .metrics = {{"price", {{"error", error}}}}});
  tf::keras::callbacks::EarlyStopping stop({.patience = 2});
  model.fit(dist, {.callbacks = stop});
  model.fit(dist, {.callbacks = {stop, tf::keras::callbacks::TerminateOnNaN()}});
  model.fit(dist, {.callbacks = std::make_shared<tf::keras::callbacks::TerminateOnNaN>()});
}
