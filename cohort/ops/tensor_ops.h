// Operations on tensors with TensorFlow's names and defaults, for code that is ported from it.
// libtorch's own are there beside them (docs/libtorch.md).
//
//   Tensor scaled = tf::cast(images, tf::float32) / 255;
//   Tensor predicted = tf::cast(tf::greater(probabilities, 0.5), tf::int64);
//   Tensor y = tf::matmul(x, weight) + bias;
//
// Gradients flow through all of them. Dtypes that differ are promoted as libtorch does. Errors of
// all: InvalidArgument (shapes, dtypes or axes that do not fit; an undefined tensor).
// Thread safety: any thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/number_scalar.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/literal.h"

namespace cohort {

namespace internal {
// A side of an operation: a tensor, what stands for one (a variable), or a number, which takes the
// other side's dtype if that is of its kind: an integer that it cannot hold is an InvalidArgument.
// Where both sides are numbers they are constants: float32 for 1.5, int32 for 1.
class COHORT_API Operand {
 public:
  Operand(const Tensor& tensor) : tensor_(tensor) {}
  template <LiteralNumber T>
  Operand(T number) : tensor_(from(number_scalar(number))), literal_(literal_dtype<T>()) {}
  template <class T>
  requires(!std::same_as<T, Tensor> && !std::is_arithmetic_v<T> &&
           std::is_convertible_v<const T&, Tensor>) Operand(const T& value)
      : tensor_(value) {}
  // A number counts as one in the promotion of dtypes.
  const Tensor& tensor() const { return tensor_; }
  bool is_number() const { return literal_.has_value(); }
  // The tensor, or a number as tf::constant makes it.
  Tensor constant() const;

 private:
  static Tensor from(const at::Scalar& number);

  Tensor tensor_;
  std::optional<DType> literal_;
};
}  // namespace internal

// Floating numbers are cut towards 0; to bool, all but 0 are true.
COHORT_API Tensor cast(const internal::Operand& value, DType dtype);

// ---- shapes -------------------------------------------------------------------------------------

// The sizes as an int32 tensor; value.sizes() gives them as numbers.
COHORT_API Tensor shape(const Tensor& value);
// One size may be -1: what remains.
COHORT_API Tensor reshape(const Tensor& value, at::IntArrayRef shape);
// perm: for each dimension of the result, that of `value`; empty: in reverse order.
COHORT_API Tensor transpose(const Tensor& value, at::IntArrayRef perm = {});
COHORT_API Tensor expand_dims(const Tensor& value, int64_t axis);
// The value without the dimensions `axis`, whose sizes must be 1; empty: without all of size 1.
COHORT_API Tensor squeeze(const Tensor& value, at::IntArrayRef axis = {});
COHORT_API Tensor concat(const std::vector<Tensor>& values, int64_t axis);
COHORT_API Tensor stack(const std::vector<Tensor>& values, int64_t axis = 0);
COHORT_API std::vector<Tensor> split(const Tensor& value, int64_t num_or_size_splits,
                                     int64_t axis = 0);
COHORT_API Tensor broadcast_to(const Tensor& value, at::IntArrayRef shape);
COHORT_API Tensor tile(const Tensor& value, at::IntArrayRef multiples);
// value[indices[..]] along `axis`. Shape of axis 0: value [n, ..], indices [m..] -> [m.., ..].
// Errors: also an index outside of the dimension.
COHORT_API Tensor gather(const Tensor& value, const Tensor& indices, int64_t axis = 0);

// ---- products -----------------------------------------------------------------------------------

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
// Shapes: a [.., n, k], b [.., k, m] -> [.., n, m]; both of rank 2 at least.
COHORT_API Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

// ---- element by element; shapes are broadcast ---------------------------------------------------

COHORT_API Tensor abs(const Tensor& x);
COHORT_API Tensor square(const Tensor& x);
COHORT_API Tensor sqrt(const Tensor& x);
COHORT_API Tensor rsqrt(const Tensor& x);
COHORT_API Tensor exp(const Tensor& x);
COHORT_API Tensor log(const Tensor& x);
COHORT_API Tensor sign(const Tensor& x);
COHORT_API Tensor round(const Tensor& x);  // halves to the even number
COHORT_API Tensor floor(const Tensor& x);
COHORT_API Tensor ceil(const Tensor& x);
COHORT_API Tensor sin(const Tensor& x);
COHORT_API Tensor cos(const Tensor& x);
COHORT_API Tensor tanh(const Tensor& x);
COHORT_API Tensor sigmoid(const Tensor& x);
COHORT_API Tensor pow(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor maximum(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor minimum(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor clip_by_value(const Tensor& x, const internal::Operand& clip_value_min,
                                const internal::Operand& clip_value_max);
COHORT_API Tensor add(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor subtract(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor multiply(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor divide(const internal::Operand& x, const internal::Operand& y);

// To tensors of bool.
COHORT_API Tensor greater(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor greater_equal(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor less(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor less_equal(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor equal(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor not_equal(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor logical_and(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor logical_or(const internal::Operand& x, const internal::Operand& y);
COHORT_API Tensor logical_not(const Tensor& x);
COHORT_API Tensor is_nan(const Tensor& x);
// x where condition holds, else y.
COHORT_API Tensor where(const Tensor& condition, const internal::Operand& x,
                        const internal::Operand& y);

// TensorFlow's second names.
namespace math {
using cohort::abs;
using cohort::add;
using cohort::divide;
using cohort::equal;
using cohort::exp;
using cohort::greater;
using cohort::is_nan;
using cohort::less;
using cohort::log;
using cohort::maximum;
using cohort::minimum;
using cohort::multiply;
using cohort::pow;
using cohort::rsqrt;
using cohort::sigmoid;
using cohort::sign;
using cohort::sqrt;
using cohort::square;
using cohort::subtract;
using cohort::tanh;
}  // namespace math
namespace linalg {
using cohort::matmul;
}  // namespace linalg

namespace debugging {
// `tensor` itself. Errors: InvalidArgument (it has a NaN or an infinity: `message`, and which; or
// it is of a dtype without them).
COHORT_API Tensor check_numerics(const Tensor& tensor, std::string_view message);
}  // namespace debugging

}  // namespace cohort
