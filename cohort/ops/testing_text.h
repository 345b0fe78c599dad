// For tests of operations: tensors as text.
#pragma once

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/structure/structure.h"

namespace cohort {

// "int32 [[1, 2], [3, 4]]".
inline std::string text(const Tensor& tensor) {
  return internal::str(internal::dtype_name(tensor.scalar_type()), ' ', Structure(tensor));
}

}  // namespace cohort
