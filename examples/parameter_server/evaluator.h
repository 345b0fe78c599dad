// Side-car evaluation: a task of its own that reads the checkpoints of the training.
#pragma once

#include "options.h"

namespace parameter_server {

// Evaluates each checkpoint as it appears, until the one of the last epoch.
// Errors: InvalidArgument (no --checkpoints).
void evaluate_checkpoints(const Options& options);

}  // namespace parameter_server
