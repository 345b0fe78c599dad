#include "cohort/keras/base/policy.h"

#include <array>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/keras/base/named.h"

namespace cohort {
namespace internal {
namespace {

constexpr std::pair<std::string_view, DType> kMixed[] = {{"mixed_bfloat16", DType::BFloat16},
                                                         {"mixed_float16", DType::Half}};
constexpr std::array<DType, 12> kWhole = {
    DType::Float, DType::Double, DType::Half,         DType::BFloat16,
    DType::Long,  DType::Int,    DType::Short,        DType::Char,
    DType::Byte,  DType::Bool,   DType::ComplexFloat, DType::ComplexDouble};

}  // namespace

Tensor widened(const Tensor& x) {
  const DType dtype = x.scalar_type();
  return dtype == DType::Half || dtype == DType::BFloat16 ? x.to(float32) : x;
}

std::optional<keras::mixed_precision::Policy> find_policy(std::string_view name) {
  for (const DType dtype : kWhole) {
    if (dtype_name(dtype) == name) return keras::mixed_precision::Policy(dtype);
  }
  for (const auto& [mixed, compute] : kMixed) {
    if (mixed == name) return keras::mixed_precision::Policy(mixed);
  }
  return std::nullopt;
}

}  // namespace internal

namespace keras::mixed_precision {

Policy::Policy(std::string_view name) : compute_dtype_(float32), variable_dtype_(float32) {
  for (const auto& [mixed, compute] : internal::kMixed) {
    if (mixed != name) continue;
    compute_dtype_ = compute;
    return;
  }
  if (const std::optional<Policy> whole = internal::find_policy(name)) {
    *this = *whole;
    return;
  }
  const std::vector<std::string_view> known = {"float32", "mixed_bfloat16", "mixed_float16",
                                               "float64", "bfloat16",       "float16"};
  internal::throw_unknown_name("policy", name, {known, known});
}

std::string Policy::name() const {
  return (is_mixed() ? "mixed_" : "") + internal::dtype_name(compute_dtype_);
}

}  // namespace keras::mixed_precision
}  // namespace cohort
