#include "cohort/ops/make_tensor.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/ScalarType.h>

#include <cstring>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/structure/device.h"

namespace cohort {

using internal::describe;
using internal::libtorch_call;
using internal::shape_str;
using internal::str;

namespace {

Tensor with_shape(const Tensor& value, const ConstantOptions& options) {
  if (!options.shape) return value;
  if (value.dim() == 0) {
    return libtorch_call("constant", [&] { return value.expand(*options.shape).clone(); });
  }
  int64_t count = 1;
  for (const int64_t size : *options.shape) count *= size;
  if (count == value.numel()) return value.reshape(*options.shape);
  throw InvalidArgumentError(
      str("constant: ", value.numel(), " numbers do not fill shape ", shape_str(*options.shape)));
}

at::TensorOptions options_of(DType dtype) {
  return at::dtype(dtype).device(internal::device_of_new_tensors());
}

// A tensor of the host where new tensors belong.
Tensor placed(const Tensor& made) {
  internal::StepRecording* const recording = internal::StepRecording::current();
  if (recording != nullptr && !internal::device_of_new_tensors().is_cpu()) {
    return recording->constant(made);
  }
  return made.to(internal::device_of_new_tensors(), /*non_blocking=*/true);
}

void check_sizes(const char* operation, at::IntArrayRef shape) {
  for (const int64_t size : shape) {
    if (size >= 0) continue;
    throw InvalidArgumentError(
        str(operation, ": shape ", shape_str(shape), " has a negative size"));
  }
}

}  // namespace

Tensor constant(const NumberLiteral& value, const ConstantOptions& options) {
  return with_shape(placed(value.tensor(options.dtype)), options);
}

Tensor constant(const Tensor& value, const ConstantOptions& options) {
  if (!value.defined()) throw InvalidArgumentError("constant of an undefined tensor");
  return with_shape(options.dtype ? value.to(*options.dtype) : value, options);
}

namespace internal {

Tensor copy_numbers(const void* values, size_t count, DType dtype) {
  const Tensor copy = at::empty({static_cast<int64_t>(count)}, at::dtype(dtype));
  if (count > 0) std::memcpy(copy.data_ptr(), values, copy.nbytes());
  return copy;
}

Tensor stack_rows(const std::vector<Tensor>& rows) {
  return libtorch_call("constant of a vector of vectors", [&] { return at::stack(rows); });
}

StringTensor stack_rows(const std::vector<StringTensor>& rows) {
  std::vector<int64_t> shape{std::ssize(rows)};
  std::vector<std::string> values;
  for (const StringTensor& row : rows) {
    if (row.sizes() != rows[0].sizes()) {
      throw InvalidArgumentError(
          str("constant of a vector of vectors: row 0 is ", shape_str(rows[0].sizes()), ", row ",
              &row - rows.data(), " ", shape_str(row.sizes()),
              "; rows must have one shape (data::RaggedTensor holds others)"));
    }
    const std::vector<std::string> strings = row.to_vector();
    values.insert(values.end(), strings.begin(), strings.end());
  }
  if (!rows.empty()) shape.insert(shape.end(), rows[0].sizes().begin(), rows[0].sizes().end());
  return {values, shape};
}

}  // namespace internal

Tensor zeros(at::IntArrayRef shape, DType dtype) {
  check_sizes("zeros", shape);
  return libtorch_call("zeros", [&] { return at::zeros(shape, options_of(dtype)); });
}

Tensor ones(at::IntArrayRef shape, DType dtype) {
  check_sizes("ones", shape);
  return libtorch_call("ones", [&] { return at::ones(shape, options_of(dtype)); });
}

Tensor zeros_like(const Tensor& input, std::optional<DType> dtype) {
  return libtorch_call("zeros_like", [&] {
    return at::zeros_like(input, at::dtype(dtype.value_or(input.scalar_type())));
  });
}

Tensor ones_like(const Tensor& input, std::optional<DType> dtype) {
  return libtorch_call("ones_like", [&] {
    return at::ones_like(input, at::dtype(dtype.value_or(input.scalar_type())));
  });
}

Tensor fill(at::IntArrayRef shape, const NumberLiteral& value) {
  check_sizes("fill", shape);
  return libtorch_call("fill",
                       [&] { return at::full(shape, value.number(), options_of(value.dtype())); });
}

Tensor eye(int64_t rows, DType dtype) {
  check_sizes("eye", rows);
  return libtorch_call("eye", [&] { return at::eye(rows, options_of(dtype)); });
}

Tensor range(const NumberLiteral& limit, std::optional<DType> dtype) {
  return range(0, limit, 1, dtype ? dtype : limit.dtype());
}

Tensor range(const NumberLiteral& start, const NumberLiteral& limit, const NumberLiteral& delta,
             std::optional<DType> dtype) {
  const double step = delta.number().toDouble();
  const double way = limit.number().toDouble() - start.number().toDouble();
  if (step == 0 || (way > 0 && step < 0) || (way < 0 && step > 0)) {
    throw InvalidArgumentError(str("range: delta ", step, " does not lead from ",
                                   start.number().toDouble(), " to ", limit.number().toDouble()));
  }
  const DType common = NumberLiteral({start, limit, delta}).dtype();
  return libtorch_call("range", [&] {
    return at::arange(start.number(), limit.number(), delta.number(),
                      options_of(dtype.value_or(common)));
  });
}

Tensor linspace(double start, double stop, int64_t num, DType dtype) {
  if (num < 1) throw InvalidArgumentError(str("linspace: num ", num, " is below 1"));
  return libtorch_call("linspace",
                       [&] { return at::linspace(start, stop, num, options_of(dtype)); });
}

Tensor one_hot(const Tensor& indices, int64_t depth, const OneHotOptions& options) {
  if (!indices.defined() || !at::isIntegralType(indices.scalar_type(), false)) {
    throw InvalidArgumentError(
        str("one_hot: indices are ", describe(indices), "; they must be integers"));
  }
  check_sizes("one_hot", depth);
  return libtorch_call("one_hot", [&] {
    const Tensor wide = indices.unsqueeze(options.axis);
    std::vector<int64_t> along(static_cast<size_t>(wide.dim()), 1);
    const int64_t axis = options.axis < 0 ? options.axis + wide.dim() : options.axis;
    along[static_cast<size_t>(axis)] = depth;
    const auto classes = at::arange(depth, at::dtype(int64).device(indices.device())).view(along);
    const auto values = at::dtype(options.dtype).device(indices.device());
    return at::where(wide == classes, at::full({}, options.on_value, values),
                     at::full({}, options.off_value, values));
  });
}

}  // namespace cohort
