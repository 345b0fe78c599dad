#include "cohort/core/structure/tensor.h"

#include <c10/util/StringUtil.h>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

std::string shape_str(at::IntArrayRef shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += decimal_digits(shape[i]);
  }
  return text + "]";
}

std::string dtype_name(DType dtype) {
  switch (dtype) {
    case DType::Float:
      return "float32";
    case DType::Double:
      return "float64";
    case DType::Half:
      return "float16";
    case DType::BFloat16:
      return "bfloat16";
    case DType::Byte:
      return "uint8";
    case DType::Char:
      return "int8";
    case DType::Short:
      return "int16";
    case DType::Int:
      return "int32";
    case DType::Long:
      return "int64";
    case DType::Bool:
      return "bool";
    case DType::ComplexFloat:
      return "complex64";
    case DType::ComplexDouble:
      return "complex128";
    default:
      return c10::toString(dtype);
  }
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  return dtype_name(tensor.scalar_type()) + " " + shape_str(tensor.sizes());
}

}  // namespace cohort::internal
