#include "cohort/distribute/values/reduction.h"

#include <ATen/ops/aminmax.h>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using Range = std::pair<int64_t, int64_t>;

template <class T>
Range range_of() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

// The range of an integer dtype whose sums int64 holds.
std::optional<Range> narrow_range(DType dtype) {
  switch (dtype) {
    case DType::Byte:
      return range_of<uint8_t>();
    case DType::Char:
      return range_of<int8_t>();
    case DType::Short:
      return range_of<int16_t>();
    case DType::Int:
      return range_of<int32_t>();
    default:
      return std::nullopt;
  }
}

}  // namespace

void check_reduce_op(distribute::ReduceOp op) {
  using distribute::ReduceOp;
  if (op == ReduceOp::SUM || op == ReduceOp::MEAN) return;
  throw InvalidArgumentError(
      str("reduce op ", static_cast<int>(op), " is none; it must be ReduceOp::SUM or MEAN"));
}

void check_can_reduce(distribute::ReduceOp op, const Tensor& value) {
  check_reduce_op(op);
  if (!value.defined()) throw InvalidArgumentError("cannot reduce an undefined tensor");
  if (value.scalar_type() == DType::Bool) {
    throw InvalidArgumentError(str("reduce ", op == distribute::ReduceOp::SUM ? "SUM" : "MEAN",
                                   " of ", describe(value), "; cast it to a number first"));
  }
}

void check_can_all_reduce(const Tensor& value) {
  const DType dtype = value.scalar_type();
  if (dtype != DType::Bool && (dtype == DType::Int || !narrow_range(dtype))) return;
  throw InvalidArgumentError(str("all_reduce of ", describe(value), ": a sum of ",
                                 dtype_name(dtype),
                                 " soon wraps; cast it to int32 or int64, or to "
                                 "a floating dtype"));
}

Tensor mean_of(const Tensor& sum, int64_t count, DType dtype) {
  if (!at::isIntegralType(dtype, /*includeBool=*/false)) return sum / count;
  const bool wide = dtype == DType::Int || dtype == DType::Long;
  return sum.to(wide ? float64 : float32) / count;
}

Tensor wide_sum(at::ArrayRef<Tensor> values, SumFunction sum_of) {
  if (!narrow_range(values[0].scalar_type())) return sum_of(values);
  std::vector<Tensor> wide;
  for (const Tensor& value : values) wide.push_back(value.to(int64));
  return sum_of(wide);
}

Tensor sum_that_fits(const Tensor& sum, const Tensor& value, const char* what) {
  const DType dtype = value.scalar_type();
  const std::optional<Range> range = narrow_range(dtype);
  if (!range) return sum;
  if (sum.is_sparse() || sum.numel() == 0) return sum.to(dtype);
  const auto [least, largest] = at::aminmax(sum);
  const int64_t low = least.item<int64_t>(), high = largest.item<int64_t>();
  if (low < range->first || high > range->second) {
    throw InvalidArgumentError(str(what, " SUM of ", describe(value), " gives ",
                                   high > range->second ? high : low, ", which is outside of [",
                                   range->first, ", ", range->second, "], what ", dtype_name(dtype),
                                   " holds; cast the values to int64 first"));
  }
  return sum.to(dtype);
}

}  // namespace cohort::internal
