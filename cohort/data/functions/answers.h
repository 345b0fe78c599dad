// The answers of functions that are asked something about an element.
#pragma once

#include <cstdint>
#include <string_view>

#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// Errors: InvalidArgument (neither a bool nor a bool scalar tensor).
bool is_true(const Structure& answer);

// Errors: InvalidArgument (neither an integer nor an integer scalar tensor; the text begins with
// `what`).
int64_t integer_of(const Structure& answer, std::string_view what = "the function returned ");

}  // namespace cohort::internal
