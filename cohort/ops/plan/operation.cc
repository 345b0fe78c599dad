#include "cohort/ops/plan/operation.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/ops/batch_norm.h"
#include "cohort/ops/gelu.h"
#include "cohort/ops/kinks.h"

namespace cohort::internal::plan {
namespace {

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

std::string by(const Size& size) { return str(size[0], "x", size[1]); }

// The shape of images after a window has slid over them; empty if no window fits.
Shape slide(const Shape& input, const Size& size, const Size& strides, const Size& dilation,
            bool same, int64_t channels) {
  if (input.size() != 4) return {};
  const int64_t height = windows(input[1], size[0], strides[0], dilation[0], same).count;
  const int64_t width = windows(input[2], size[1], strides[1], dilation[1], same).count;
  if (height < 1 || width < 1) return {};
  return {input[0], height, width, channels};
}

// images: [batch, channels, height, width], with `value` on the borders that windows reach over.
Tensor padded(const Tensor& images, const Size& size, const Size& strides, const Size& dilation,
              bool same, double value) {
  if (!same) return images;
  const Windows rows = windows(images.size(2), size[0], strides[0], dilation[0], true);
  const Windows columns = windows(images.size(3), size[1], strides[1], dilation[1], true);
  return at::constant_pad_nd(images, {columns.before, columns.after, rows.before, rows.after},
                             value);
}

Tensor convolve(const Convolution& operation, const Tensor& input, const Tensor& kernel,
                const Tensor& bias) {
  Tensor images = padded(input.permute({0, 3, 1, 2}), operation.size, operation.strides,
                         operation.dilation, operation.same, 0);
  Size strides = operation.strides;
  if (has_gaps(operation.size, strides)) {
    images = seen_pixels(images, strides);
    strides = {1, 1};
  }
  return at::conv2d(images, kernel.permute({3, 2, 0, 1}).contiguous(), bias, strides,
                    at::IntArrayRef{0, 0}, operation.dilation)
      .permute({0, 2, 3, 1});
}

Tensor pool(const MaxPooling& operation, const Tensor& input) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const Tensor images = padded(input.permute({0, 3, 1, 2}), operation.size, operation.strides,
                               {1, 1}, operation.same, kLowest);
  return at::max_pool2d(images, operation.size, operation.strides).permute({0, 2, 3, 1});
}

Tensor average(const AveragePooling& operation, const Tensor& input) {
  const auto pooled = [&](const Tensor& images) {
    return at::avg_pool2d(
        padded(images, operation.size, operation.strides, {1, 1}, operation.same, 0),
        operation.size, operation.strides);
  };
  const Tensor images = input.permute({0, 3, 1, 2});
  const Tensor inside = at::ones({1, 1, images.size(2), images.size(3)}, images.options());
  return (pooled(images) / pooled(inside)).permute({0, 2, 3, 1});
}

// Empty where the elements do not fit.
Shape reshaped(const Reshape& operation, const Shape& input) {
  if (input.empty()) return {};
  int64_t left = 1;
  for (size_t d = 1; d < input.size(); ++d) left *= input[d];
  Shape shape{input[0]};
  shape.insert(shape.end(), operation.example.begin(), operation.example.end());
  auto unknown = shape.end();
  for (auto size = shape.begin() + 1; size != shape.end(); ++size) {
    if (*size == -1) {
      unknown = size;
    } else if (*size < 1 || left % *size != 0) {
      return {};
    } else {
      left /= *size;
    }
  }
  if (unknown != shape.end()) {
    *unknown = left;
    left = 1;
  }
  return left == 1 ? shape : Shape();
}

Tensor activate(const Activation& operation, const Tensor& x) {
  switch (operation.function) {
    case Function::kRelu:
      return at::relu(x);
    case Function::kRelu6:
      return at::hardtanh(x, 0, 6);
    case Function::kLeakyRelu:
      return at::leaky_relu(x, operation.alpha);
    case Function::kElu:
      return at::elu(x, operation.alpha);
    case Function::kSelu:
      return internal::selu(x);
    case Function::kTanh:
      return at::tanh(x);
    case Function::kSigmoid:
      return at::sigmoid(x);
    case Function::kSoftplus:
      return internal::softplus(x);
    case Function::kGelu:
      return internal::gelu(x);
    case Function::kSwish:
      return at::silu(x);
  }
  throw InternalError("an activation without a function");
}

std::string name_of(Function function) {
  switch (function) {
    case Function::kRelu:
      return "relu";
    case Function::kRelu6:
      return "relu6";
    case Function::kLeakyRelu:
      return "leaky relu";
    case Function::kElu:
      return "elu";
    case Function::kSelu:
      return "selu";
    case Function::kTanh:
      return "tanh";
    case Function::kSigmoid:
      return "sigmoid";
    case Function::kSoftplus:
      return "softplus";
    case Function::kGelu:
      return "gelu";
    case Function::kSwish:
      return "swish";
  }
  return "";
}

// sums: [batch, columns], the input's part; h: the state before, c: an LSTM's memory.
Tensor next_state(const Recurrent& operation, const Tensor& sums, const Tensor& recurrent,
                  const Tensor& state_bias, const Tensor& h, Tensor& c) {
  Tensor of_state = at::mm(h, recurrent);
  if (operation.cell == Cell::kLstm) {
    const std::vector<Tensor> z = (sums + of_state).chunk(4, 1);
    c = z[1].sigmoid() * c + z[0].sigmoid() * z[2].tanh();
    return z[3].sigmoid() * c.tanh();
  }
  if (state_bias.defined()) of_state = of_state + state_bias;
  const std::vector<Tensor> x = sums.chunk(3, 1), u = of_state.chunk(3, 1);
  const Tensor update = (x[0] + u[0]).sigmoid(), reset = (x[1] + u[1]).sigmoid();
  return update * h + (1 - update) * (x[2] + reset * u[2]).tanh();
}

Tensor run_steps(const Recurrent& operation, const Tensor& input, const Tensor& kernel,
                 const Tensor& recurrent, const Tensor& bias) {
  const bool two_biases = operation.cell == Cell::kGru && bias.defined();
  Tensor sums = at::matmul(operation.backwards ? input.flip(1) : input, kernel);
  if (bias.defined()) sums = sums + (two_biases ? bias.select(0, 0) : bias);
  Tensor h = at::zeros({input.size(0), operation.units}, input.options());
  Tensor c = h;
  std::vector<Tensor> states;
  for (const Tensor& of_input : sums.unbind(1)) {
    h = next_state(operation, of_input, recurrent, two_biases ? bias.select(0, 1) : Tensor(), h, c);
    states.push_back(h);
  }
  return operation.sequences ? at::stack(states, 1) : h;
}

}  // namespace

Windows windows(int64_t length, int64_t size, int64_t stride, int64_t dilation, bool same) {
  const int64_t reach = (size - 1) * dilation + 1;
  if (!same) return {length < reach ? 0 : (length - reach) / stride + 1, 0, 0};
  const int64_t count = (length + stride - 1) / stride;
  const int64_t total = std::max<int64_t>((count - 1) * stride + reach - length, 0);
  return {count, total / 2, total - total / 2};
}

bool has_gaps(const Size& size, const Size& strides) {
  return size == Size{1, 1} && strides != Size{1, 1};
}

Tensor seen_pixels(const Tensor& images, const Size& strides) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  return images.slice(2, 0, kEnd, strides[0]).slice(3, 0, kEnd, strides[1]);
}

size_t num_parameters(const Operation& operation) {
  return std::visit(Match{[](const Convolution& o) -> size_t { return o.bias ? 2 : 1; },
                          [](const Dense& o) -> size_t { return o.bias ? 2 : 1; },
                          [](const Recurrent& o) -> size_t { return o.bias ? 3 : 2; },
                          [](const Dropout&) -> size_t { return 1; },
                          [](const Normalization& o) -> size_t {
                            return size_t{o.scale} + size_t{o.center} +
                                   size_t{o.by_batch ? 0u : 2u};
                          },
                          [](const auto&) -> size_t { return 0; }},
                    operation);
}

std::string describe(const Operation& operation) {
  return std::visit(
      Match{[](const Convolution& o) { return by(o.size) + " convolution"; },
            [](const MaxPooling& o) { return by(o.size) + " max-pooling"; },
            [](const AveragePooling& o) { return by(o.size) + " average-pooling"; },
            [](const GlobalAverage&) { return std::string("mean of pixels"); },
            [](const Dense&) { return std::string("product"); },
            [](const Activation& o) { return name_of(o.function); },
            [](const Dropout&) { return std::string("dropout"); },
            [](const Normalization& o) {
              return std::string(o.by_batch ? "normalization by batch" : "normalization");
            },
            [](const Flatten&) { return std::string("flatten"); },
            [](const Reshape&) { return std::string("reshape"); },
            [](const Recurrent& o) { return std::string(o.cell == Cell::kLstm ? "LSTM" : "GRU"); }},
      operation);
}

Shape result_shape(const Operation& operation, const Shape& input) {
  return std::visit(
      Match{[&](const Convolution& o) {
              return slide(input, o.size, o.strides, o.dilation, o.same, o.filters);
            },
            [&](const MaxPooling& o) {
              return input.size() == 4 ? slide(input, o.size, o.strides, {1, 1}, o.same, input[3])
                                       : Shape();
            },
            [&](const AveragePooling& o) {
              return input.size() == 4 ? slide(input, o.size, o.strides, {1, 1}, o.same, input[3])
                                       : Shape();
            },
            [&](const GlobalAverage& o) {
              if (input.size() != 4 || input[1] < 1 || input[2] < 1) return Shape();
              return o.keeps_axes ? Shape{input[0], 1, 1, input[3]} : Shape{input[0], input[3]};
            },
            [&](const Normalization&) {
              return input.size() < 2 || input.back() < 1 ? Shape() : input;
            },
            [&](const Reshape& o) { return reshaped(o, input); },
            [&](const Dense& o) {
              return input.size() == 2 ? Shape{input[0], o.units} : Shape();
            },
            [&](const Activation&) { return input; }, [&](const Dropout&) { return input; },
            [&](const Flatten&) {
              int64_t features = 1;
              for (size_t d = 1; d < input.size(); ++d) features *= input[d];
              return input.empty() ? Shape() : Shape{input[0], features};
            },
            [&](const Recurrent& o) {
              if (input.size() != 3 || input[1] < 1 || input[2] < 1) return Shape();
              return o.sequences ? Shape{input[0], input[1], o.units} : Shape{input[0], o.units};
            }},
      operation);
}

std::vector<Shape> parameter_shapes(const Operation& operation, const Shape& input) {
  std::vector<Shape> shapes =
      std::visit(Match{[&](const Convolution& o) -> std::vector<Shape> {
                         return {{o.size[0], o.size[1], input.back(), o.filters}, {o.filters}};
                       },
                       [&](const Dense& o) -> std::vector<Shape> {
                         return {{input.back(), o.units}, {o.units}};
                       },
                       [&](const Recurrent& o) -> std::vector<Shape> {
                         Shape bias{o.columns()};
                         if (o.cell == Cell::kGru) bias.insert(bias.begin(), 2);
                         return {{input.back(), o.columns()}, {o.units, o.columns()}, bias};
                       },
                       [&](const Dropout&) -> std::vector<Shape> { return {input}; },
                       [&](const Normalization&) {
                         return std::vector<Shape>(num_parameters(operation), {input.back()});
                       },
                       [](const auto&) { return std::vector<Shape>(); }},
                 operation);
  shapes.resize(num_parameters(operation));
  return shapes;
}

Tensor evaluate(const std::vector<Operation>& operations, const Tensor& input,
                const std::vector<Tensor>& parameters) {
  size_t next = 0;
  const auto parameter = [&](bool there) { return there ? parameters[next++] : Tensor(); };
  Tensor value = input;
  for (const Operation& operation : operations) {
    value = std::visit(
        Match{[&](const Convolution& o) {
                const Tensor kernel = parameter(true);
                return convolve(o, value, kernel, parameter(o.bias));
              },
              [&](const MaxPooling& o) { return pool(o, value); },
              [&](const Dense& o) {
                const Tensor kernel = parameter(true);
                const Tensor bias = parameter(o.bias);
                return bias.defined() ? at::addmm(bias, value, kernel) : at::mm(value, kernel);
              },
              [&](const Activation& o) { return activate(o, value); },
              [&](const Dropout& o) { return value * parameter(true) / (1 - o.rate); },
              [&](const AveragePooling& o) { return average(o, value); },
              [&](const GlobalAverage& o) {
                return value.mean(at::IntArrayRef{1, 2}, /*keepdim=*/o.keeps_axes);
              },
              [&](const Normalization& o) {
                const Tensor gamma = parameter(o.scale), beta = parameter(o.center);
                const Tensor mean = parameter(!o.by_batch), variance = parameter(!o.by_batch);
                if (o.by_batch) return normalize_by_batch_reference(value, gamma, beta, o.epsilon);
                Tensor result = (value - mean) * (variance + o.epsilon).rsqrt();
                if (gamma.defined()) result = result * gamma;
                return beta.defined() ? result + beta : result;
              },
              [&](const Flatten&) { return value.flatten(1); },
              [&](const Reshape& o) { return value.reshape(reshaped(o, value.sizes().vec())); },
              [&](const Recurrent& o) {
                const Tensor kernel = parameter(true), recurrent = parameter(true);
                return run_steps(o, value, kernel, recurrent, parameter(o.bias));
              }},
        operation);
  }
  return value;
}

}  // namespace cohort::internal::plan
