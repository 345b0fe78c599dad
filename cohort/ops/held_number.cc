#include "cohort/ops/held_number.h"

#include <c10/core/ScalarType.h>

#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

bool in_range(DType dtype, int64_t number) {
  switch (dtype) {
    case DType::Byte:
      return std::in_range<uint8_t>(number);
    case DType::Char:
      return std::in_range<int8_t>(number);
    case DType::Short:
      return std::in_range<int16_t>(number);
    case DType::Int:
      return std::in_range<int32_t>(number);
    default:
      return true;
  }
}

}  // namespace

bool can_hold(DType dtype, const at::Scalar& number) {
  if (dtype == DType::Bool) return number.isBoolean();
  if (at::isIntegralType(dtype, /*includeBool=*/false)) {
    return number.isIntegral(/*includeBool=*/false) && in_range(dtype, number.toLong());
  }
  return !number.isBoolean() && (!number.isComplex() || at::isComplexType(dtype));
}

at::Scalar held_number(DType dtype, const at::Scalar& number) {
  if (number.isBoolean() || number.isComplex()) return number;
  const auto narrow = static_cast<float>(number.toDouble());
  switch (dtype) {
    case DType::Half:
      return static_cast<float>(at::Half(narrow));
    case DType::BFloat16:
      return static_cast<float>(at::BFloat16(narrow));
    case DType::Float:
    case DType::ComplexFloat:
      return narrow;
    default:
      return number;
  }
}

std::string number_text(const at::Scalar& number) {
  if (number.isBoolean()) return number.toBool() ? "true" : "false";
  if (number.isComplex()) {
    const c10::complex<double> value = number.toComplexDouble();
    return str(value.real(), "+", value.imag(), "j");
  }
  return number.isFloatingPoint() ? str(number.toDouble()) : str(number.toLong());
}

}  // namespace cohort::internal
