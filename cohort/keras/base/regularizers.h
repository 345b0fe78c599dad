// Penalties on weights and activations, which layers add to their losses().
//
//   layers::Dense(10, {.kernel_regularizer = regularizers::L2(1e-5)});
//   layers::Dense(10, {.kernel_regularizer = [](const Tensor& w) { return w.abs().max(); }});
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/keras/base/config.h"

namespace cohort::keras::regularizers {

// l1 * sum(|x|) + l2 * sum(x^2).
// Shape: x [..] -> []. Errors (constructors): InvalidArgument (a factor that is not finite).
class COHORT_API L1L2 {
 public:
  explicit L1L2(double l1 = 0, double l2 = 0);
  Tensor operator()(const Tensor& x) const;
  // Keras's form.
  Config serialize() const;

 private:
  double l1_;
  double l2_;
};
class L1 : public L1L2 {
 public:
  explicit L1(double l1 = 0.01) : L1L2(l1, 0) {}
};
class L2 : public L1L2 {
 public:
  explicit L2(double l2 = 0.01) : L1L2(0, l2) {}
};

// A value that holds any of them, or any function from a tensor to a scalar; default-made none.
// Thread safety: immutable.
class COHORT_API Regularizer {
 public:
  Regularizer() = default;
  // "l1", "l2", "l1_l2" (factors 0.01). Errors: InvalidArgument (another name).
  Regularizer(std::string_view name);
  Regularizer(const char* name) : Regularizer(std::string_view(name)) {}
  Regularizer(const std::string& name) : Regularizer(std::string_view(name)) {}
  template <class Fn>
  requires(std::is_invocable_r_v<Tensor, const Fn&, const Tensor&> &&
           !std::convertible_to<Fn, std::string_view> && !std::same_as<Fn, Regularizer>)
      Regularizer(Fn fn) {
    if constexpr (std::derived_from<Fn, L1L2>) {
      config_ = std::make_shared<const Config>(fn.serialize());
    }
    fn_ = std::move(fn);
  }

  explicit operator bool() const { return static_cast<bool>(fn_); }
  // Shape: x [..] -> []. Call it only if there is one.
  Tensor operator()(const Tensor& x) const { return fn_(x); }
  // Keras's form; nullopt for a function of the program.
  std::optional<Config> serialize() const;

 private:
  std::function<Tensor(const Tensor&)> fn_;
  std::shared_ptr<const Config> config_;  // nullptr: a function of the program
};

}  // namespace cohort::keras::regularizers
