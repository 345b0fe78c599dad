#include "cohort/distribute/variables/autocast.h"

#include <utility>

namespace cohort::internal {
namespace {

thread_local std::optional<DType> current_dtype;

// libtorch 1.13 has no products of float16 on CPUs, later ones slow ones.
bool is_emulated(const Tensor& x, DType dtype) { return dtype == DType::Half && x.is_cpu(); }

}  // namespace

Tensor computable(const Tensor& x, DType dtype) {
  if (x.scalar_type() == dtype && !is_emulated(x, dtype)) return x;
  const Tensor cast = x.to(dtype);
  return is_emulated(x, dtype) ? cast.to(float32) : cast;
}

Tensor as_computed(const Tensor& result, DType dtype) {
  return is_emulated(result, dtype) && result.is_floating_point() ? result.to(dtype) : result;
}

ScopedAutocast::ScopedAutocast(std::optional<DType> dtype)
    : before_(std::exchange(current_dtype, dtype)) {}

ScopedAutocast::~ScopedAutocast() { current_dtype = before_; }

Tensor autocast_value(Tensor value) {
  if (!current_dtype || !value.is_floating_point()) return value;
  return computable(value, *current_dtype);
}

}  // namespace cohort::internal
