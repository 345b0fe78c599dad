#include "cohort/ops/random_checks.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/ops/random_fill.h"

namespace cohort::internal {
namespace {

[[noreturn]] void refuse_dtype(const char* what, DType dtype, const char* wanted) {
  throw InvalidArgumentError(
      str("random::", what, " makes ", wanted, " tensors, but got dtype ", dtype_name(dtype)));
}

}  // namespace

void check_random_shape(const char* what, at::IntArrayRef shape) {
  for (const int64_t size : shape) {
    if (size < 0) {
      throw InvalidArgumentError(str("random::", what, " was asked for the shape ",
                                     shape_str(shape), ", which has a negative size"));
    }
  }
}

void check_uniform(const char* what, at::IntArrayRef shape, const random::UniformOptions& options) {
  check_random_shape(what, shape);
  if (!is_random_float(options.dtype) && !is_random_integer(options.dtype)) {
    refuse_dtype(what, options.dtype, "floating-point or integer");
  }
  if (!(options.minval < options.maxval) || !std::isfinite(options.maxval - options.minval)) {
    throw InvalidArgumentError(str("random::", what,
                                   " needs minval below maxval, both finite, but got [",
                                   options.minval, ", ", options.maxval, ")"));
  }
}

void check_uniform_full_int(const char* what, at::IntArrayRef shape, DType dtype) {
  check_random_shape(what, shape);
  if (!is_random_integer(dtype)) refuse_dtype(what, dtype, "integer");
}

void check_normal(const char* what, at::IntArrayRef shape, const random::NormalOptions& options) {
  check_random_shape(what, shape);
  if (!is_random_float(options.dtype)) refuse_dtype(what, options.dtype, "floating-point");
  if (!std::isfinite(options.mean) || !std::isfinite(options.stddev) || options.stddev < 0) {
    throw InvalidArgumentError(str("random::", what,
                                   " needs a finite mean and a finite stddev from 0 on, but got ",
                                   "mean ", options.mean, ", stddev ", options.stddev));
  }
}

Tensor new_host_tensor(at::IntArrayRef shape, DType dtype) {
  return at::empty(shape, at::TensorOptions().dtype(dtype));
}

}  // namespace cohort::internal
