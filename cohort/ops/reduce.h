// Sums and the like over dimensions of a tensor, with TensorFlow's names, defaults and dtypes.
//
//   Tensor total = tf::reduce_sum(losses);                             // over all dimensions
//   Tensor rows = tf::reduce_mean(x, {.axis = 1, .keepdims = true});
//   Tensor classes = tf::argmax(logits, 1);
//
// Over the replicas of a strategy: Strategy::reduce.
// Thread safety: any thread. Gradients flow through those of floating numbers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {

// Dimensions to reduce, counted from the end if negative: 1, {0, 2}; none: all of them.
class ReduceDims {
 public:
  ReduceDims() = default;
  ReduceDims(int64_t axis) : axes_{axis} {}
  ReduceDims(int axis) : axes_{axis} {}
  ReduceDims(std::initializer_list<int64_t> axes) : axes_(axes) {}
  ReduceDims(std::vector<int64_t> axes) : axes_(std::move(axes)) {}
  const std::vector<int64_t>& axes() const { return axes_; }

 private:
  std::vector<int64_t> axes_;
};

struct ReduceOptions {
  ReduceDims axis = {};
  bool keepdims = false;  // whether reduced dimensions stay, of size 1
};

// The result has the input's dtype, also of integers, whose sums may wrap around and whose means
// are cut towards 0. Without elements: sum 0, product 1, mean NaN, the least or greatest value of
// the dtype (or infinity), all true, any false.
// Errors of all: InvalidArgument (axis out of range or twice; bool, or for all and any another
// dtype; mean of no integers; an undefined tensor).
COHORT_API Tensor reduce_sum(const Tensor& input, const ReduceOptions& options = {});
COHORT_API Tensor reduce_mean(const Tensor& input, const ReduceOptions& options = {});
COHORT_API Tensor reduce_max(const Tensor& input, const ReduceOptions& options = {});
COHORT_API Tensor reduce_min(const Tensor& input, const ReduceOptions& options = {});
COHORT_API Tensor reduce_prod(const Tensor& input, const ReduceOptions& options = {});
COHORT_API Tensor reduce_all(const Tensor& input, const ReduceOptions& options = {});
COHORT_API Tensor reduce_any(const Tensor& input, const ReduceOptions& options = {});

// The index of the greatest (least) element along `axis`, the first of equal ones.
// Shape: without dimension `axis`. Errors: InvalidArgument (rank 0; axis; a dimension of size 0).
COHORT_API Tensor argmax(const Tensor& input, int64_t axis = 0, DType output_type = int64);
COHORT_API Tensor argmin(const Tensor& input, int64_t axis = 0, DType output_type = int64);
struct ArgmaxOptions {
  int64_t axis = 0;
  DType output_type = int64;
};
// argmax(logits, {.axis = -1}).
inline Tensor argmax(const Tensor& input, const ArgmaxOptions& options) {
  return argmax(input, options.axis, options.output_type);
}
inline Tensor argmin(const Tensor& input, const ArgmaxOptions& options) {
  return argmin(input, options.axis, options.output_type);
}

namespace math {
using cohort::argmax;
using cohort::argmin;
using cohort::reduce_all;
using cohort::reduce_any;
using cohort::reduce_max;
using cohort::reduce_mean;
using cohort::reduce_min;
using cohort::reduce_prod;
using cohort::reduce_sum;
}  // namespace math

}  // namespace cohort
