#include "cohort/parameter_server/coordinator/exact_totals.h"

#include <ATen/ops/isfinite.h>

#include <cstddef>
#include <cstdint>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

DType wide(DType dtype) {
  if (at::isIntegralType(dtype, /*includeBool=*/false)) return at::kLong;
  return at::isComplexType(dtype) ? at::kComplexDouble : at::kDouble;
}

bool are_finite(const Tensor& tensor) { return at::isfinite(tensor).all().item<bool>(); }

// Adds to `sum`; both are contiguous int64. Returns whether it holds the result.
bool add_integers(const Tensor& sum, const Tensor& other) {
  auto* to = sum.data_ptr<int64_t>();
  const auto* from = other.data_ptr<int64_t>();
  for (int64_t i = 0; i < sum.numel(); ++i) {
    if (__builtin_add_overflow(to[i], from[i], &to[i])) return false;
  }
  return true;
}

}  // namespace

Tensor exact_sum(const std::vector<Leaf>& leaves, const std::string& what) {
  const DType dtype = leaves[0].tensor().scalar_type();
  const auto copy = [type = wide(dtype)](const Leaf& leaf) {
    return leaf.tensor().to(at::kCPU, type, /*non_blocking=*/false, /*copy=*/true).contiguous();
  };
  const Tensor sum = copy(leaves[0]);
  const bool is_integral = sum.scalar_type() == at::kLong;
  bool fits = true;
  bool was_finite = is_integral || are_finite(sum);
  for (size_t i = 1; i < leaves.size() && fits; ++i) {
    const Tensor next = copy(leaves[i]);
    if (is_integral) {
      fits = add_integers(sum, next);
    } else {
      was_finite = was_finite && are_finite(next);
      sum.add_(next);
    }
  }
  const Tensor total = sum.to(dtype);
  if (is_integral) {
    fits = fits && total.to(at::kLong).equal(sum);
  } else {
    fits = !was_finite || are_finite(total);
  }
  if (fits) return total;
  throw InvalidArgumentError(str(what, " is more than ", dtype_name(dtype),
                                 " holds; return the totals of each shard in a wider dtype, as ",
                                 is_integral ? "int64" : "float64"));
}

}  // namespace cohort::internal
