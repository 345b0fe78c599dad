#include "cohort/ops/tensor_ops.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <c10/core/ScalarType.h>

#include "cohort/core/libtorch_error.h"
#include "cohort/ops/held_number.h"
#include "cohort/ops/kinks.h"

namespace cohort {

using internal::describe;
using internal::libtorch_call;
using internal::Operand;
using internal::str;

// Counts as a number in the promotion of dtypes.
Tensor Operand::from(const at::Scalar& number) {
  Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

Tensor Operand::constant() const {
  return literal_ ? at::scalar_tensor(tensor_.item(), at::dtype(*literal_)) : tensor_;
}

namespace {

void check_number(const char* operation, const Operand& number, const Tensor& other) {
  const at::Scalar value = number.tensor().item();
  if (!at::isIntegralType(other.scalar_type(), false) || !value.isIntegral(false)) return;
  if (internal::can_hold(other.scalar_type(), value)) return;
  throw InvalidArgumentError(str(operation, ": ", internal::number_text(value), " does not fit ",
                                 internal::dtype_name(other.scalar_type()),
                                 ", the dtype of the other side; tf::cast converts that"));
}

// fn of both sides as tensors whose dtypes libtorch promotes.
template <class Fn>
Tensor binary(const char* operation, const Operand& x, const Operand& y, Fn fn) {
  return libtorch_call(operation, [&]() -> Tensor {
    if (x.is_number() && y.is_number()) return fn(x.constant(), y.constant());
    if (x.is_number() && y.tensor().defined()) check_number(operation, x, y.tensor());
    if (y.is_number() && x.tensor().defined()) check_number(operation, y, x.tensor());
    return fn(x.tensor(), y.tensor());
  });
}

}  // namespace

Tensor cast(const Operand& value, DType dtype) {
  return libtorch_call("cast", [&] {
    return value.is_number() ? value.tensor().clone().to(dtype) : value.tensor().to(dtype);
  });
}

Tensor shape(const Tensor& value) {
  if (!value.defined()) throw InvalidArgumentError("shape of an undefined tensor");
  std::vector<int64_t> sizes = value.sizes().vec();
  return at::from_blob(sizes.data(), static_cast<int64_t>(sizes.size()), at::dtype(int64))
      .to(int32);
}

Tensor reshape(const Tensor& value, at::IntArrayRef shape) {
  return libtorch_call("reshape", [&] { return value.reshape(shape); });
}

Tensor transpose(const Tensor& value, at::IntArrayRef perm) {
  return libtorch_call("transpose", [&] {
    if (!perm.empty()) return value.permute(perm);
    std::vector<int64_t> reversed;
    for (int64_t d = value.dim(); d-- > 0;) reversed.push_back(d);
    return value.permute(reversed);
  });
}

Tensor expand_dims(const Tensor& value, int64_t axis) {
  return libtorch_call("expand_dims", [&] { return value.unsqueeze(axis); });
}

Tensor squeeze(const Tensor& value, at::IntArrayRef axis) {
  return libtorch_call("squeeze", [&] {
    if (axis.empty()) return value.squeeze();
    std::vector<int64_t> sizes = value.sizes().vec();
    for (const int64_t dim : axis) {
      if (value.size(dim) != 1) {
        throw InvalidArgumentError(
            str("squeeze: dimension ", dim, " of ", describe(value), " is not of size 1"));
      }
      sizes[static_cast<size_t>(dim < 0 ? dim + value.dim() : dim)] = -1;
    }
    std::erase(sizes, -1);
    return value.reshape(sizes);
  });
}

Tensor concat(const std::vector<Tensor>& values, int64_t axis) {
  return libtorch_call("concat", [&] { return at::cat(values, axis); });
}

Tensor stack(const std::vector<Tensor>& values, int64_t axis) {
  return libtorch_call("stack", [&] { return at::stack(values, axis); });
}

std::vector<Tensor> split(const Tensor& value, int64_t num_or_size_splits, int64_t axis) {
  return libtorch_call("split", [&] {
    const int64_t size = value.size(axis);
    if (num_or_size_splits < 1 || size % num_or_size_splits != 0) {
      throw InvalidArgumentError(str("split: dimension ", axis, " of ", describe(value),
                                     " cannot be divided into ", num_or_size_splits,
                                     " equal parts"));
    }
    std::vector<Tensor> parts;
    const int64_t length = size / num_or_size_splits;
    for (int64_t i = 0; i < num_or_size_splits; ++i) {
      parts.push_back(value.narrow(axis, i * length, length));
    }
    return parts;
  });
}

Tensor broadcast_to(const Tensor& value, at::IntArrayRef shape) {
  return libtorch_call("broadcast_to", [&] { return value.broadcast_to(shape); });
}

Tensor tile(const Tensor& value, at::IntArrayRef multiples) {
  return libtorch_call("tile", [&] {
    if (static_cast<int64_t>(multiples.size()) != value.dim()) {
      throw InvalidArgumentError(str("tile: ", multiples.size(), " multiples for ", describe(value),
                                     "; give one for each dimension"));
    }
    return value.repeat(multiples);
  });
}

Tensor gather(const Tensor& value, const Tensor& indices, int64_t axis) {
  return libtorch_call("gather", [&] {
    const int64_t dim = axis < 0 ? axis + value.dim() : axis;
    std::vector<int64_t> sizes = value.sizes().vec();
    const Tensor rows = at::index_select(value, dim, indices.reshape({-1}));
    const auto place = sizes.erase(sizes.begin() + dim);
    sizes.insert(place, indices.sizes().begin(), indices.sizes().end());
    return rows.reshape(sizes);
  });
}

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  if (!a.defined() || !b.defined() || a.dim() < 2 || b.dim() < 2) {
    throw InvalidArgumentError(str("matmul of ", describe(a), " and ", describe(b),
                                   "; both need two dimensions at least (expand_dims adds one)"));
  }
  return libtorch_call("matmul", [&] {
    return at::matmul(options.transpose_a ? a.transpose(-1, -2) : a,
                      options.transpose_b ? b.transpose(-1, -2) : b);
  });
}

Tensor abs(const Tensor& x) {
  return libtorch_call("abs", [&] { return x.abs(); });
}
Tensor square(const Tensor& x) {
  return libtorch_call("square", [&] { return x * x; });
}
Tensor sqrt(const Tensor& x) {
  return libtorch_call("sqrt", [&] { return x.sqrt(); });
}
Tensor rsqrt(const Tensor& x) {
  return libtorch_call("rsqrt", [&] { return x.rsqrt(); });
}
Tensor floor(const Tensor& x) {
  return libtorch_call("floor", [&] { return x.floor(); });
}
Tensor ceil(const Tensor& x) {
  return libtorch_call("ceil", [&] { return x.ceil(); });
}
Tensor sin(const Tensor& x) {
  return libtorch_call("sin", [&] { return x.sin(); });
}
Tensor cos(const Tensor& x) {
  return libtorch_call("cos", [&] { return x.cos(); });
}
Tensor exp(const Tensor& x) {
  return libtorch_call("exp", [&] { return x.exp(); });
}
Tensor log(const Tensor& x) {
  return libtorch_call("log", [&] { return x.log(); });
}
Tensor sign(const Tensor& x) {
  return libtorch_call("sign", [&] { return x.sign(); });
}
Tensor round(const Tensor& x) {
  return libtorch_call("round", [&] { return x.round(); });
}
Tensor tanh(const Tensor& x) {
  return libtorch_call("tanh", [&] { return x.tanh(); });
}
Tensor sigmoid(const Tensor& x) {
  return libtorch_call("sigmoid", [&] { return x.sigmoid(); });
}
Tensor pow(const Operand& x, const Operand& y) {
  return binary("pow", x, y, [](const Tensor& a, const Tensor& b) { return at::pow(a, b); });
}
Tensor maximum(const Operand& x, const Operand& y) {
  return binary("maximum", x, y,
                [](const Tensor& a, const Tensor& b) { return internal::maximum(a, b); });
}
Tensor minimum(const Operand& x, const Operand& y) {
  return binary("minimum", x, y,
                [](const Tensor& a, const Tensor& b) { return internal::minimum(a, b); });
}
Tensor clip_by_value(const Tensor& x, const Operand& clip_value_min,
                     const Operand& clip_value_max) {
  return minimum(maximum(x, clip_value_min), clip_value_max);
}
Tensor add(const Operand& x, const Operand& y) {
  return binary("add", x, y, [](const Tensor& a, const Tensor& b) { return a + b; });
}
Tensor subtract(const Operand& x, const Operand& y) {
  return binary("subtract", x, y, [](const Tensor& a, const Tensor& b) { return a - b; });
}
Tensor multiply(const Operand& x, const Operand& y) {
  return binary("multiply", x, y, [](const Tensor& a, const Tensor& b) { return a * b; });
}
Tensor divide(const Operand& x, const Operand& y) {
  return binary("divide", x, y, [](const Tensor& a, const Tensor& b) { return a / b; });
}

Tensor greater(const Operand& x, const Operand& y) {
  return binary("greater", x, y, [](const Tensor& a, const Tensor& b) { return a > b; });
}
Tensor greater_equal(const Operand& x, const Operand& y) {
  return binary("greater_equal", x, y, [](const Tensor& a, const Tensor& b) { return a >= b; });
}
Tensor less(const Operand& x, const Operand& y) {
  return binary("less", x, y, [](const Tensor& a, const Tensor& b) { return a < b; });
}
Tensor less_equal(const Operand& x, const Operand& y) {
  return binary("less_equal", x, y, [](const Tensor& a, const Tensor& b) { return a <= b; });
}
Tensor equal(const Operand& x, const Operand& y) {
  return binary("equal", x, y, [](const Tensor& a, const Tensor& b) { return a == b; });
}
Tensor not_equal(const Operand& x, const Operand& y) {
  return binary("not_equal", x, y, [](const Tensor& a, const Tensor& b) { return a != b; });
}
Tensor logical_and(const Operand& x, const Operand& y) {
  return binary("logical_and", x, y,
                [](const Tensor& a, const Tensor& b) { return a.logical_and(b); });
}
Tensor logical_or(const Operand& x, const Operand& y) {
  return binary("logical_or", x, y,
                [](const Tensor& a, const Tensor& b) { return a.logical_or(b); });
}
Tensor logical_not(const Tensor& x) {
  return libtorch_call("logical_not", [&] { return x.logical_not(); });
}
Tensor is_nan(const Tensor& x) {
  return libtorch_call("is_nan", [&] { return x.isnan(); });
}
Tensor where(const Tensor& condition, const Operand& x, const Operand& y) {
  return binary("where", x, y,
                [&](const Tensor& a, const Tensor& b) { return at::where(condition, a, b); });
}

namespace debugging {

Tensor check_numerics(const Tensor& tensor, std::string_view message) {
  if (!tensor.defined() || !at::isFloatingType(tensor.scalar_type())) {
    throw InvalidArgumentError(
        str(message, " : check_numerics takes floating numbers, but got ", describe(tensor)));
  }
  const Tensor values = tensor.detach();
  // A sum is finite only where all values are; a sum may also overflow.
  if (values.sum().isfinite().item<bool>()) return tensor;
  const bool nan = values.isnan().any().item<bool>();
  const bool infinite = values.isinf().any().item<bool>();
  if (!nan && !infinite) return tensor;
  throw InvalidArgumentError(str(message, " : Tensor had ", infinite ? "Inf" : "",
                                 infinite && nan ? " and " : "", nan ? "NaN" : "", " values"));
}

}  // namespace debugging
}  // namespace cohort
