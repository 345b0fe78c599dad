// What a shard and what is written to it look like.
#pragma once

#include <string>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// For people: "float32 [2, 3]".
std::string form_of(const Tensor& tensor);
// Errors: InvalidArgument (`given`, which is `what` of the shard of this name, is of another shape
// or dtype than its value).
void check_same_form(const std::string& name, const char* what, const Tensor& given,
                     const Tensor& value);

}  // namespace cohort::internal
