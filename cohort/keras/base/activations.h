// Activation functions, by name or as any function of a tensor.
//
//   layers::Dense(10, {.activation = "relu"});
//   layers::Dense(10, {.activation = [](const Tensor& x) { return x.clamp(0, 6); }});
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::keras::activations {

// A value; default-constructed it is the identity ("linear").
// Thread safety: immutable.
class COHORT_API Activation {
 public:
  Activation() = default;
  // linear, relu, relu6, elu, selu, gelu, exponential, hard_sigmoid (0.2 x + 0.5, cut to [0, 1]:
  // Keras 2's), mish, sigmoid, softmax (of the last axis), softplus, softsign, swish (also silu),
  // tanh.
  // Errors: InvalidArgument (another name; with the nearest, and all).
  Activation(std::string_view name);
  Activation(const char* name) : Activation(std::string_view(name)) {}
  Activation(const std::string& name) : Activation(std::string_view(name)) {}
  template <class Fn>
  requires(std::is_invocable_r_v<Tensor, const Fn&, const Tensor&> &&
           !std::convertible_to<Fn, std::string_view> && !std::same_as<Fn, Activation>)
      Activation(Fn fn)
      : name_("function"), fn_(std::move(fn)), is_named_(false) {}

  // Shape: x [..] -> the same.
  Tensor operator()(const Tensor& x) const { return fn_ ? fn_(x) : x; }
  const std::string& name() const { return name_; }
  // Whether the name says which it is; else it is a function of the program.
  bool is_named() const { return is_named_; }

 private:
  std::string name_ = "linear";
  std::function<Tensor(const Tensor&)> fn_;
  bool is_named_ = true;
};

}  // namespace cohort::keras::activations
