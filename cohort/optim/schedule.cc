#include "cohort/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "cohort/optim/checks.h"

namespace cohort::optim {
ExponentialDecay::ExponentialDecay(const ExponentialDecayOptions& options) : options_(options) {
  internal::check_not_negative("ExponentialDecayOptions.initial_learning_rate",
                               options.initial_learning_rate);
  internal::check_positive("ExponentialDecayOptions.decay_steps", options.decay_steps);
  internal::check_not_negative("ExponentialDecayOptions.decay_rate", options.decay_rate);
}

double ExponentialDecay::at(int64_t iteration) const {
  double decays = static_cast<double>(iteration) / options_.decay_steps;
  if (options_.staircase) decays = std::floor(decays);
  return options_.initial_learning_rate * std::pow(options_.decay_rate, decays);
}

PiecewiseConstantDecay::PiecewiseConstantDecay(std::vector<int64_t> boundaries,
                                               std::vector<double> values)
    : boundaries_(std::move(boundaries)), values_(std::move(values)) {
  if (values_.size() != boundaries_.size() + 1) {
    throw InvalidArgumentError(
        internal::str("PiecewiseConstantDecay takes one value more than boundaries, but got ",
                      values_.size(), " values and ", boundaries_.size(), " boundaries"));
  }
  for (size_t i = 1; i < boundaries_.size(); ++i) {
    if (boundaries_[i] > boundaries_[i - 1]) continue;
    throw InvalidArgumentError(
        internal::str("the boundaries of PiecewiseConstantDecay must be strictly ascending, but ",
                      boundaries_[i], " follows ", boundaries_[i - 1]));
  }
  for (double value : values_) {
    internal::check_not_negative("each value of PiecewiseConstantDecay", value);
  }
}

double PiecewiseConstantDecay::at(int64_t iteration) const {
  // A boundary still belongs to the interval that it ends.
  const auto end = std::lower_bound(boundaries_.begin(), boundaries_.end(), iteration);
  return values_[static_cast<size_t>(end - boundaries_.begin())];
}

CosineDecay::CosineDecay(const CosineDecayOptions& options) : options_(options) {
  internal::check_not_negative("CosineDecayOptions.initial_learning_rate",
                               options.initial_learning_rate);
  internal::check_positive("CosineDecayOptions.decay_steps", options.decay_steps);
  internal::check({.name = "CosineDecayOptions.alpha", .value = options.alpha});
  internal::check_not_negative("CosineDecayOptions.warmup_target",
                               options.warmup_target.value_or(0));
  internal::check_not_negative("CosineDecayOptions.warmup_steps", options.warmup_steps);
}

double CosineDecay::at(int64_t iteration) const {
  double step = static_cast<double>(iteration);
  double from = options_.initial_learning_rate;
  if (options_.warmup_target) {
    const double target = *options_.warmup_target;
    if (step < options_.warmup_steps)
      return (target - from) * (step / options_.warmup_steps) + from;
    step -= options_.warmup_steps;
    from = target;
  }
  const double completed = std::min(step, options_.decay_steps) / options_.decay_steps;
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * completed));
  return from * ((1 - options_.alpha) * cosine + options_.alpha);
}

}  // namespace cohort::optim
