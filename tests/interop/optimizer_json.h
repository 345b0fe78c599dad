// Optimizers from the probe's JSON.
#pragma once

#include <cohort/keras/optimizers/optimizers.h>

#include <string>

#include "probe.h"

namespace cohort::interop {

// options: the class's by name, "learning_rate" a number or {"schedule": class, its options}.
// Errors: InvalidArgument (another class).
keras::optimizers::Optimizer make_optimizer(const std::string& name, const Json& options);
keras::optimizers::LearningRate make_learning_rate(const Json& json);

}  // namespace cohort::interop
