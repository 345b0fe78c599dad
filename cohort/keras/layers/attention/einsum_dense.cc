#include "cohort/keras/layers/attention/einsum_dense.h"

#include <ATen/ops/einsum.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cohort/core/text.h"
#include "cohort/keras/base/logits.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

using internal::quoted;
using internal::str;

constexpr std::string_view kEllipsis = "...";

// An equation, taken apart: letters without the ellipsis, and where that stands.
struct Einsum {
  // Errors: InvalidArgument.
  explicit Einsum(const std::string& equation);

  bool is_batch_left() const { return left_; }
  // The number of the kernel's first letters that are the input's last ones, if its others are the
  // output's last ones, so that the product is one of matrices. Else 0.
  size_t summed_at_the_end() const;

  std::string input;
  std::string kernel;
  std::string output;

 private:
  bool left_ = false;
  bool right_ = false;

  void check(const std::string& equation) const;
};

bool are_letters(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_letter);
}

Einsum::Einsum(const std::string& equation) {
  const size_t comma = equation.find(',');
  const size_t arrow = equation.find("->");
  if (comma != std::string::npos && arrow != std::string::npos && comma < arrow) {
    input = equation.substr(0, comma);
    kernel = equation.substr(comma + 1, arrow - comma - 1);
    output = equation.substr(arrow + 2);
  }
  left_ = input.starts_with(kEllipsis) && output.starts_with(kEllipsis);
  right_ = !left_ && input.ends_with(kEllipsis) && output.ends_with(kEllipsis);
  for (std::string* part : {&input, &output}) {
    if (left_) part->erase(0, kEllipsis.size());
    if (right_) part->resize(part->size() - kEllipsis.size());
  }
  check(equation);
}

void Einsum::check(const std::string& equation) const {
  if (!are_letters(input) || !are_letters(kernel) || !are_letters(output)) {
    throw InvalidArgumentError(str("EinsumDense: the equation is ", quoted(equation),
                                   "; it must be of the form \"ab,bc->ac\", \"...ab,bc->...ac\" or "
                                   "\"ab...,bc->ac...\""));
  }
  for (const char letter : output) {
    if (input.find(letter) != std::string::npos || kernel.find(letter) != std::string::npos)
      continue;
    throw InvalidArgumentError(str("EinsumDense: the output of the equation ", quoted(equation),
                                   " has the letter '", letter,
                                   "', which neither the input nor the kernel has"));
  }
}

size_t Einsum::summed_at_the_end() const {
  if (right_) return 0;
  for (size_t count = 1; count < kernel.size() && count <= input.size(); ++count) {
    const std::string_view free = std::string_view(input).substr(0, input.size() - count);
    const std::string_view summed = std::string_view(input).substr(input.size() - count);
    const std::string_view added = std::string_view(kernel).substr(count);
    const bool fits = summed == std::string_view(kernel).substr(0, count) &&
                      output == std::string(free) + std::string(added) &&
                      added.find_first_of(input) == std::string_view::npos;
    if (fits) return count;
  }
  return 0;
}

template <class Fields, class Equation, class Options>
void einsum_dense_fields(Fields& field, Equation& equation, Options& options) {
  field("equation", equation);
  field("activation", options.activation);
  field("kernel_initializer", options.kernel_initializer);
  field("bias_initializer", options.bias_initializer);
  field("kernel_regularizer", options.kernel_regularizer);
  field("bias_regularizer", options.bias_regularizer);
  field("activity_regularizer", options.activity_regularizer);
  field("kernel_constraint", options.kernel_constraint);
  field("bias_constraint", options.bias_constraint);
}

class EinsumDenseImpl final : public Layer {
 public:
  EinsumDenseImpl(std::string equation, std::vector<int64_t> output_shape,
                  EinsumDenseOptions options)
      : Layer("EinsumDense", {.name = options.name,
                              .dtype = options.dtype,
                              .activity_regularizer = options.activity_regularizer}),
        equation_(std::move(equation)),
        einsum_(equation_),
        summed_(einsum_.summed_at_the_end()),
        output_shape_(std::move(output_shape)),
        options_(std::move(options)) {
    for (const char axis : options_.bias_axes) {
      if (einsum_.output.find(axis) != std::string::npos) continue;
      throw InvalidArgumentError(str("EinsumDense: bias_axes is ", quoted(options_.bias_axes),
                                     ", but the output of the equation ", quoted(equation_),
                                     " has no letter '", axis, "'"));
    }
    for (const int64_t size : output_shape_) {
      if (size == kUnknownDim || size > 0) continue;
      throw InvalidArgumentError(str("EinsumDense: output_shape is ",
                                     internal::shape_str(output_shape_),
                                     "; sizes are above 0, or kUnknownDim"));
    }
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      internal::Json sizes = internal::Json::array();
      for (const int64_t size : output_shape_) {
        sizes.push_back(size == kUnknownDim ? internal::Json() : internal::Json(size));
      }
      field.always("output_shape", std::move(sizes));
      const std::string& axes = options_.bias_axes;
      field.always("bias_axes", axes.empty() ? internal::Json() : internal::Json(axes));
      einsum_dense_fields(field, equation_, options_);
    });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const Shape output = whole_output(input_shapes[0]);
    kernel_ = add_weight("kernel", kernel_shape(input_shapes[0], output),
                         {.initializer = options_.kernel_initializer,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint});
    if (options_.bias_axes.empty()) return;
    bias_ = add_weight("bias", bias_shape(output),
                       {.initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint});
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    const Tensor y = product(in_compute_dtype(input));
    return internal::activate_outputs(options_.activation, bias_ ? y + bias_.value() : y);
  }

 private:
  // Dimensions of the input that the ellipsis stands for.
  size_t elided(const Shape& input) const {
    if (input.size() < einsum_.input.size()) throw_wrong_rank(input);
    return input.size() - einsum_.input.size();
  }

  // The output's shape with the batch and what the ellipsis stands for. Errors: InvalidArgument.
  Shape whole_output(const Shape& input) const {
    const size_t more = elided(input);
    Shape output = {input[0]};
    if (einsum_.is_batch_left()) {
      for (size_t i = 1; i < more; ++i) output.push_back(input[i]);
    }
    output.insert(output.end(), output_shape_.begin(), output_shape_.end());
    if (!einsum_.is_batch_left()) {
      output.insert(output.end(), input.end() - static_cast<int64_t>(more), input.end());
    }
    if (output.size() != einsum_.output.size() + more) {
      throw InvalidArgumentError(str(
          "layer '", name(), "': output_shape is ", internal::shape_str(output_shape_),
          " for the equation ", quoted(equation_), " and an input of ", internal::shape_str(input),
          "; it has a size for each letter of the output but the batch"));
    }
    return output;
  }

  // The size of the letter of a shape, whose letters are these; nullptr: it has none.
  const int64_t* size_of(char letter, const std::string& letters, const Shape& shape) const {
    const size_t found = letters.find(letter);
    if (found == std::string::npos) return nullptr;
    const size_t first = einsum_.is_batch_left() ? shape.size() - letters.size() : 0;
    return &shape[first + found];
  }

  Shape kernel_shape(const Shape& input, const Shape& output) const {
    for (const char letter : einsum_.input) {
      const int64_t* const given = size_of(letter, einsum_.input, input);
      const int64_t* const wanted = size_of(letter, einsum_.output, output);
      if (wanted == nullptr || *wanted == kUnknownDim || *given == kUnknownDim ||
          *wanted == *given) {
        continue;
      }
      throw InvalidArgumentError(str("layer '", name(), "': the letter '", letter,
                                     "' of the equation ", quoted(equation_), " is ", *given,
                                     " in the input and ", *wanted, " in output_shape"));
    }
    Shape kernel;
    for (const char letter : einsum_.kernel) {
      const int64_t* size = size_of(letter, einsum_.input, input);
      if (size == nullptr) size = size_of(letter, einsum_.output, output);
      if (size == nullptr || *size == kUnknownDim) {
        throw InvalidArgumentError(str("layer '", name(), "': nothing says how large the letter '",
                                       letter, "' of the kernel in the equation ",
                                       quoted(equation_), " is"));
      }
      kernel.push_back(*size);
    }
    return kernel;
  }

  Shape bias_shape(const Shape& output) const {
    const size_t first = einsum_.output.find_first_of(options_.bias_axes);
    Shape bias;
    for (size_t i = first; i < einsum_.output.size(); ++i) {
      const char letter = einsum_.output[i];
      const bool differs = options_.bias_axes.find(letter) != std::string::npos;
      bias.push_back(differs ? *size_of(letter, einsum_.output, output) : 1);
      if (bias.back() == kUnknownDim) {
        throw InvalidArgumentError(str("layer '", name(), "': bias_axes has the letter '", letter,
                                       "', whose size output_shape must say"));
      }
    }
    if (!einsum_.is_batch_left())
      bias.resize(bias.size() + (output.size() - einsum_.output.size()), 1);
    return bias;
  }

  Tensor product(const Tensor& x) const {
    if (x.dim() < static_cast<int64_t>(einsum_.input.size())) throw_wrong_rank(x.sizes().vec());
    const bool has_more = x.dim() > static_cast<int64_t>(einsum_.input.size());
    if (summed_ == 0 || (has_more && !einsum_.is_batch_left())) {
      return at::einsum(equation_, {x, kernel_.value()});
    }
    const auto summed = static_cast<int64_t>(summed_);
    const Tensor kernel = kernel_.value();
    const int64_t kept = x.dim() - summed;
    Shape sizes(x.sizes().begin(), x.sizes().begin() + kept);
    sizes.insert(sizes.end(), kernel.sizes().begin() + summed, kernel.sizes().end());
    const Tensor rows = kept == 0 ? x.flatten().unsqueeze(0) : x.flatten(kept);
    return rows.matmul(kernel.flatten(0, summed - 1).flatten(1)).reshape(sizes);
  }

  [[noreturn]] void throw_wrong_rank(const Shape& input) const {
    throw InvalidArgumentError(str("layer '", name(), "': the equation ", quoted(equation_),
                                   " is for inputs of rank ", einsum_.input.size(),
                                   " or more, but got ", internal::shape_str(input)));
  }

  std::string equation_;
  Einsum einsum_;
  size_t summed_;  // see Einsum::summed_at_the_end
  std::vector<int64_t> output_shape_;
  EinsumDenseOptions options_;
  Variable kernel_;
  Variable bias_;
};

}  // namespace

EinsumDense::EinsumDense(std::string equation, std::vector<int64_t> output_shape,
                         EinsumDenseOptions options)
    : LayerHandle(std::make_shared<EinsumDenseImpl>(std::move(equation), std::move(output_shape),
                                                    std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_einsum_dense(FieldReader& field) {
  std::string equation;
  layers::EinsumDenseOptions options;
  field.common(options);
  layers::einsum_dense_fields(field, equation, options);
  std::optional<std::string> bias_axes;
  field("bias_axes", bias_axes);
  options.bias_axes = bias_axes.value_or("");
  std::vector<int64_t> output_shape;
  if (const Json* sizes = field.find("output_shape"); sizes != nullptr && sizes->is_array()) {
    for (const Json& size : *sizes) {
      output_shape.push_back(kUnknownDim);
      if (!size.is_null()) read_field(size, output_shape.back(), quoted("output_shape"));
    }
  } else if (sizes != nullptr) {
    read_field(*sizes, output_shape.emplace_back(), quoted("output_shape"));
  }
  return layers::EinsumDense(std::move(equation), std::move(output_shape), std::move(options));
}

}  // namespace cohort::internal
