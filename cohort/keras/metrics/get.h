// Metrics by name.
//
//   metrics::PredictionMetric metric = metrics::get("accuracy");
#pragma once

#include <string_view>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

// A new metric of the kind that Keras knows under `name`: a class ("TopKCategoricalAccuracy"), a
// function ("top_k_categorical_accuracy") or its short form ("mae"). "accuracy", "acc",
// "crossentropy" and "ce" choose binary, categorical or sparse form by the shapes of each update:
// binary where predictions have a last dimension of 1, sparse where labels lack that of the
// classes. The metric is called what it was asked for by; by a class, its own name.
// Errors: InvalidArgument (no such metric; names the nearest; or one that needs arguments).
COHORT_API PredictionMetric get(std::string_view name);

}  // namespace cohort::keras::metrics

namespace cohort::internal {
// Errors: InvalidArgument, as get's; makes nothing.
void check_metric_name(std::string_view name);
}  // namespace cohort::internal
