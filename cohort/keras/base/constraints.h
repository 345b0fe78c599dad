// Properties that weights keep: an optimizer restores them after each update.
//
//   layers::Dense(10, {.kernel_constraint = constraints::MaxNorm(3)});
//   layers::Dense(10, {.kernel_constraint = "non_neg", .bias_constraint = constraints::NonNeg()});
//   layers::Dense(10, {.kernel_constraint = [](const Tensor& w) { return w.clamp(-1, 1); }});
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/base/config.h"
#include "cohort/optim/constraint.h"

namespace cohort::keras::constraints {

// One of those below, or any function from a weight to one of its shape; default-made none. Also
// what a Variable takes as its constraint. Thread safety: immutable.
class COHORT_API Constraint : public optim::Constraint {
 public:
  Constraint() = default;
  // "max_norm", "min_max_norm", "non_neg", "radial_constraint", "unit_norm", or the class's name.
  // Errors: InvalidArgument (another name).
  Constraint(std::string_view name);
  Constraint(const char* name) : Constraint(std::string_view(name)) {}
  Constraint(const std::string& name) : Constraint(std::string_view(name)) {}
  template <class Fn>
  requires(std::is_invocable_r_v<Tensor, const Fn&, const Tensor&> &&
           !std::convertible_to<Fn, std::string_view> && !std::derived_from<Fn, Constraint>)
      Constraint(Fn fn)
      : optim::Constraint(std::move(fn)) {}

  // Keras's form; nullopt for a function of the program.
  std::optional<Config> serialize() const;

 protected:
  Constraint(const optim::Projection& projection, const Config& config)
      : optim::Constraint(projection), config_(std::make_shared<const Config>(config)) {}

 private:
  std::shared_ptr<const Config> config_;  // nullptr: a function of the program
};

// Norms over `axis`: 0 for each unit of a Dense, {0, 1, 2} for each filter of a Conv2D.
// Errors (constructors): InvalidArgument (a number that is not finite, or below 0).

// Longer ones are shortened to max_value.
class COHORT_API MaxNorm : public Constraint {
 public:
  explicit MaxNorm(double max_value = 2, const std::vector<int64_t>& axis = {0});
};

// No element is below 0.
class COHORT_API NonNeg : public Constraint {
 public:
  NonNeg();
};

// Every norm is 1.
class COHORT_API UnitNorm : public Constraint {
 public:
  explicit UnitNorm(const std::vector<int64_t>& axis = {0});
};

struct MinMaxNormOptions {
  double min_value = 0;
  double max_value = 1;
  double rate = 1;  // the share of the way into [min_value, max_value] that an update goes
  std::vector<int64_t> axis = {0};
};
class COHORT_API MinMaxNorm : public Constraint {
 public:
  explicit MinMaxNorm(const MinMaxNormOptions& options = {});
};

// The pixels of a Conv2D's square kernel depend on their distance from its middle alone.
class COHORT_API RadialConstraint : public Constraint {
 public:
  RadialConstraint();
};

}  // namespace cohort::keras::constraints
