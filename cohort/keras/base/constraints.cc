#include "cohort/keras/base/constraints.h"

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/named.h"

namespace cohort::keras::constraints {
namespace {

using internal::Json;
using optim::Projection;

constexpr double kEpsilon = 1e-7;  // Keras's backend.epsilon()

Config config_of(std::string_view class_name, Json fields) {
  return internal::serialized("keras.constraints", class_name, std::move(fields));
}

Json axis_json(const std::vector<int64_t>& axis) {
  return axis.size() == 1 ? Json(axis[0]) : Json(axis);
}

Projection norm(const MinMaxNormOptions& options, const char* name) {
  for (const double number : {options.min_value, options.max_value, options.rate}) {
    if (std::isfinite(number) && number >= 0) continue;
    throw InvalidArgumentError(
        internal::str(name, ": ", number, " was given; numbers must be finite, and 0 or more"));
  }
  if (options.axis.empty()) {
    throw InvalidArgumentError(internal::str(name, ": axis names no axis; 0 is the first one"));
  }
  return {.kind = Projection::Kind::kNorm,
          .axes = options.axis,
          .least = options.min_value,
          .most = options.max_value,
          .rate = options.rate,
          .epsilon = kEpsilon};
}

}  // namespace

MaxNorm::MaxNorm(double max_value, const std::vector<int64_t>& axis)
    : Constraint(norm({.max_value = max_value, .axis = axis}, "MaxNorm"),
                 config_of("MaxNorm", {{"max_value", max_value}, {"axis", axis_json(axis)}})) {}

NonNeg::NonNeg()
    : Constraint({.kind = Projection::Kind::kNonNegative}, config_of("NonNeg", Json::object())) {}

UnitNorm::UnitNorm(const std::vector<int64_t>& axis)
    : Constraint(norm({.min_value = 1, .max_value = 1, .axis = axis}, "UnitNorm"),
                 config_of("UnitNorm", {{"axis", axis_json(axis)}})) {}

MinMaxNorm::MinMaxNorm(const MinMaxNormOptions& options)
    : Constraint(norm(options, "MinMaxNorm"),
                 config_of("MinMaxNorm", {{"min_value", options.min_value},
                                          {"max_value", options.max_value},
                                          {"rate", options.rate},
                                          {"axis", axis_json(options.axis)}})) {}

RadialConstraint::RadialConstraint()
    : Constraint({.kind = Projection::Kind::kRadial},
                 config_of("RadialConstraint", Json::object())) {}

std::optional<Config> Constraint::serialize() const {
  if (config_ == nullptr) return std::nullopt;
  return *config_;
}

Constraint::Constraint(std::string_view name) {
  using Make = Constraint (*)();
  static const std::vector<internal::Named<Make>> classes = {
      {"MaxNorm", {"max_norm", "maxnorm"}, []() -> Constraint { return MaxNorm(); }},
      {"MinMaxNorm", {"min_max_norm"}, []() -> Constraint { return MinMaxNorm(); }},
      {"NonNeg", {"non_neg", "nonneg"}, []() -> Constraint { return NonNeg(); }},
      {"RadialConstraint",
       {"radial_constraint"},
       []() -> Constraint { return RadialConstraint(); }},
      {"UnitNorm", {"unit_norm", "unitnorm"}, []() -> Constraint { return UnitNorm(); }}};
  const auto* found = internal::find_named(classes, name);
  if (found == nullptr) {
    internal::throw_unknown_name("constraint", name, internal::names_of(classes));
  }
  *this = found->value();
}

}  // namespace cohort::keras::constraints
