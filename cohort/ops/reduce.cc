#include "cohort/ops/reduce.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/full.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <limits>

#include "cohort/core/libtorch_error.h"

namespace cohort {
namespace {

using internal::describe;
using internal::libtorch_call;
using internal::str;

// The dimensions to reduce, from 0 on; all of them where none is named.
std::vector<int64_t> dims_of(const char* operation, const Tensor& input,
                             const ReduceOptions& options) {
  if (!input.defined()) throw InvalidArgumentError(str(operation, " of an undefined tensor"));
  const int64_t rank = input.dim();
  std::vector<int64_t> dims;
  std::vector<bool> taken(static_cast<size_t>(rank));
  for (const int64_t axis : options.axis.axes()) {
    const int64_t dim = axis < 0 ? axis + rank : axis;
    if (dim < 0 || dim >= rank || taken[static_cast<size_t>(dim)]) {
      throw InvalidArgumentError(
          str(operation, ": axis ", axis, " of ", describe(input),
              dim < 0 || dim >= rank ? " does not exist" : " is named twice"));
    }
    taken[static_cast<size_t>(dim)] = true;
    dims.push_back(dim);
  }
  if (dims.empty()) {
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  }
  return dims;
}

void check_numbers(const char* operation, const Tensor& input) {
  if (input.scalar_type() != boolean) return;
  throw InvalidArgumentError(str(operation, " of ", describe(input),
                                 "; cast it to numbers, or use reduce_any or "
                                 "reduce_all"));
}

int64_t count_of(const Tensor& input, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= input.size(dim);
  return count;
}

at::Scalar extreme(DType dtype, bool greatest) {
  if (at::isFloatingType(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return greatest ? infinity : -infinity;
  }
  return AT_DISPATCH_INTEGRAL_TYPES(dtype, "extreme", [&] {
    return at::Scalar(static_cast<int64_t>(greatest ? std::numeric_limits<scalar_t>::max()
                                                    : std::numeric_limits<scalar_t>::lowest()));
  });
}

// The greatest or least; of no elements the other end of the dtype's numbers.
Tensor reduce_extreme(const char* operation, const Tensor& input, const ReduceOptions& options,
                      bool greatest) {
  const std::vector<int64_t> dims = dims_of(operation, input, options);
  check_numbers(operation, input);
  return libtorch_call(operation, [&]() -> Tensor {
    if (dims.empty()) return input;
    if (count_of(input, dims) == 0) {
      const Tensor shape = input.sum(dims, options.keepdims);
      return at::full(shape.sizes(), extreme(input.scalar_type(), !greatest), input.options());
    }
    return greatest ? input.amax(dims, options.keepdims) : input.amin(dims, options.keepdims);
  });
}

Tensor reduce_logical(const char* operation, const Tensor& input, const ReduceOptions& options,
                      bool all) {
  std::vector<int64_t> dims = dims_of(operation, input, options);
  if (input.scalar_type() != boolean) {
    throw InvalidArgumentError(str(operation, " of ", describe(input), "; it must be bool"));
  }
  std::sort(dims.rbegin(), dims.rend());
  Tensor result = input;
  for (const int64_t dim : dims) {
    result = all ? result.all(dim, options.keepdims) : result.any(dim, options.keepdims);
  }
  return result;
}

Tensor index_of(const char* operation, const Tensor& input, int64_t axis, DType output_type,
                bool greatest) {
  if (!input.defined() || input.dim() == 0) {
    throw InvalidArgumentError(
        str(operation, " of ", describe(input), ", which has no dimension to search"));
  }
  return libtorch_call(operation, [&] {
    return (greatest ? input.argmax(axis) : input.argmin(axis)).to(output_type);
  });
}

}  // namespace

Tensor reduce_sum(const Tensor& input, const ReduceOptions& options) {
  const std::vector<int64_t> dims = dims_of("reduce_sum", input, options);
  check_numbers("reduce_sum", input);
  return libtorch_call("reduce_sum", [&] {
    return dims.empty() ? input : input.sum(dims, options.keepdims, input.scalar_type());
  });
}

Tensor reduce_mean(const Tensor& input, const ReduceOptions& options) {
  const std::vector<int64_t> dims = dims_of("reduce_mean", input, options);
  check_numbers("reduce_mean", input);
  return libtorch_call("reduce_mean", [&]() -> Tensor {
    if (dims.empty()) return input;
    if (!at::isIntegralType(input.scalar_type(), false)) return input.mean(dims, options.keepdims);
    const int64_t count = count_of(input, dims);
    if (count == 0) {
      throw InvalidArgumentError(str("reduce_mean of no integers: ", describe(input)));
    }
    return input.sum(dims, options.keepdims, input.scalar_type()).div(count, "trunc");
  });
}

Tensor reduce_prod(const Tensor& input, const ReduceOptions& options) {
  std::vector<int64_t> dims = dims_of("reduce_prod", input, options);
  check_numbers("reduce_prod", input);
  return libtorch_call("reduce_prod", [&] {
    std::sort(dims.rbegin(), dims.rend());
    Tensor result = input;
    for (const int64_t dim : dims) {
      result = result.prod(dim, options.keepdims, input.scalar_type());
    }
    return result;
  });
}

Tensor reduce_max(const Tensor& input, const ReduceOptions& options) {
  return reduce_extreme("reduce_max", input, options, /*greatest=*/true);
}

Tensor reduce_min(const Tensor& input, const ReduceOptions& options) {
  return reduce_extreme("reduce_min", input, options, /*greatest=*/false);
}

Tensor reduce_all(const Tensor& input, const ReduceOptions& options) {
  return reduce_logical("reduce_all", input, options, /*all=*/true);
}

Tensor reduce_any(const Tensor& input, const ReduceOptions& options) {
  return reduce_logical("reduce_any", input, options, /*all=*/false);
}

Tensor argmax(const Tensor& input, int64_t axis, DType output_type) {
  return index_of("argmax", input, axis, output_type, /*greatest=*/true);
}

Tensor argmin(const Tensor& input, int64_t axis, DType output_type) {
  return index_of("argmin", input, axis, output_type, /*greatest=*/false);
}

}  // namespace cohort
