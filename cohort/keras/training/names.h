// Names of optimizers, losses and metrics, as compile takes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/keras/training/compile_options.h"

namespace cohort::internal {

// Errors of all: InvalidArgument (an unknown name; with the nearest known one).
keras::optimizers::Optimizer optimizer_of_name(std::string_view name);
keras::losses::Loss loss_of_name(std::string_view name);
// A new metric, which is reported as `name`.
keras::MetricArgument::Made metric_of_name(const std::string& name);
void check_metric_name(std::string_view name);
// The mean of fn(labels, predictions).
keras::MetricArgument::Made metric_of_function(const std::string& name,
                                               keras::MetricArgument::Function fn);

// "; did you mean 'adam'? There are: adam, rmsprop, sgd".
std::string nearest_name_hint(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace cohort::internal
