// Errors of user functions, with where they happened.
#pragma once

#include <string>

#include "cohort/core/error.h"

namespace cohort::internal {

// Called in a catch block: throws the current exception again with `context` before its text. A
// cohort::Error keeps its class; libtorch's become InvalidArgument, other std::exceptions Unknown;
// what is no std::exception goes on as it is.
[[noreturn]] void rethrow_with_context(const std::string& context);

}  // namespace cohort::internal
