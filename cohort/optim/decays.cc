#include "cohort/optim/decays.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cohort/optim/checks.h"

namespace cohort::optim {

PolynomialDecay::PolynomialDecay(const PolynomialDecayOptions& options) : options_(options) {
  internal::check_not_negative("PolynomialDecayOptions.initial_learning_rate",
                               options.initial_learning_rate);
  internal::check_positive("PolynomialDecayOptions.decay_steps", options.decay_steps);
  internal::check_not_negative("PolynomialDecayOptions.end_learning_rate",
                               options.end_learning_rate);
  internal::check_not_negative("PolynomialDecayOptions.power", options.power);
}

double PolynomialDecay::at(int64_t iteration) const {
  double step = static_cast<double>(iteration);
  double steps = options_.decay_steps;
  if (options_.cycle) {
    if (step > 0) steps *= std::ceil(step / steps);
  } else {
    step = std::min(step, steps);
  }
  const double range = options_.initial_learning_rate - options_.end_learning_rate;
  return range * std::pow(1 - step / steps, options_.power) + options_.end_learning_rate;
}

InverseTimeDecay::InverseTimeDecay(const InverseTimeDecayOptions& options) : options_(options) {
  internal::check_not_negative("InverseTimeDecayOptions.initial_learning_rate",
                               options.initial_learning_rate);
  internal::check_positive("InverseTimeDecayOptions.decay_steps", options.decay_steps);
  internal::check_not_negative("InverseTimeDecayOptions.decay_rate", options.decay_rate);
}

double InverseTimeDecay::at(int64_t iteration) const {
  double decays = static_cast<double>(iteration) / options_.decay_steps;
  if (options_.staircase) decays = std::floor(decays);
  return options_.initial_learning_rate / (1 + options_.decay_rate * decays);
}

CosineDecayRestarts::CosineDecayRestarts(const CosineDecayRestartsOptions& options)
    : options_(options) {
  internal::check_not_negative("CosineDecayRestartsOptions.initial_learning_rate",
                               options.initial_learning_rate);
  internal::check_positive("CosineDecayRestartsOptions.first_decay_steps",
                           options.first_decay_steps);
  internal::check_not_negative("CosineDecayRestartsOptions.m_mul", options.m_mul);
  internal::check({.name = "CosineDecayRestartsOptions.alpha", .value = options.alpha});
  if (!(options.t_mul >= 1 && std::isfinite(options.t_mul))) {
    throw InvalidArgumentError(internal::str(
        "CosineDecayRestartsOptions.t_mul must be a finite number from 1, but is ", options.t_mul));
  }
}

double CosineDecayRestarts::at(int64_t iteration) const {
  // In periods of the first length: how much of the present one has gone, and which it is.
  double completed = static_cast<double>(iteration) / options_.first_decay_steps;
  double restarts = 0;
  if (options_.t_mul == 1) {
    restarts = std::floor(completed);
    completed -= restarts;
  } else {
    double length = 1;
    for (; completed >= length; length *= options_.t_mul) {
      completed -= length;
      ++restarts;
    }
    completed /= length;
  }
  const double top = std::pow(options_.m_mul, restarts);
  const double cosine = 0.5 * top * (1 + std::cos(std::numbers::pi * completed));
  return options_.initial_learning_rate * ((1 - options_.alpha) * cosine + options_.alpha);
}

}  // namespace cohort::optim
