// What compile can refuse before it is known which outputs the model has.
#pragma once

#include "cohort/keras/model/compile_options.h"

namespace cohort::internal {

// Errors: InvalidArgument (an unknown name; one metric object in two places; an output that is
// named twice).
void check_compile_options(const keras::CompileOptions& options);

}  // namespace cohort::internal
