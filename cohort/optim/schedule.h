// Learning rates that change with the iteration, as Keras 2.15 has them.
//
//   optim::ExponentialDecay schedule({.initial_learning_rate = 0.1, .decay_steps = 1000,
//                                     .decay_rate = 0.96});
//   double learning_rate = schedule.at(optimizer_iterations);
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/core/export.h"

namespace cohort::optim {

// Thread safety: immutable.
class COHORT_API LearningRateSchedule {
 public:
  virtual ~LearningRateSchedule() = default;
  // The learning rate of the update that follows `iteration` others.
  virtual double at(int64_t iteration) const = 0;
};

struct ExponentialDecayOptions {
  double initial_learning_rate = 0;
  double decay_steps = 0;  // iterations; above 0
  double decay_rate = 0;   // the factor that decay_steps iterations bring; not below 0
  bool staircase = false;  // decay once every decay_steps instead of smoothly
};
// initial_learning_rate * decay_rate ^ (iteration / decay_steps).
class COHORT_API ExponentialDecay final : public LearningRateSchedule {
 public:
  // Errors: InvalidArgument (names the option and its value).
  explicit ExponentialDecay(const ExponentialDecayOptions& options);
  double at(int64_t iteration) const override;
  const ExponentialDecayOptions& options() const { return options_; }

 private:
  ExponentialDecayOptions options_;
};

// values[i] for the first i with iteration <= boundaries[i], else the last value.
class COHORT_API PiecewiseConstantDecay final : public LearningRateSchedule {
 public:
  // Errors: InvalidArgument (not one value more than boundaries; boundaries not ascending; a value
  // negative or not finite).
  PiecewiseConstantDecay(std::vector<int64_t> boundaries, std::vector<double> values);
  double at(int64_t iteration) const override;
  const std::vector<int64_t>& boundaries() const { return boundaries_; }
  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<int64_t> boundaries_;
  std::vector<double> values_;
};

struct CosineDecayOptions {
  double initial_learning_rate = 0;
  double decay_steps = 0;  // iterations of the decay, after the warm-up; above 0
  double alpha = 0;        // the share that remains at the end, in [0, 1]
  // If set: first rise linearly to it, then decay from it.
  std::optional<double> warmup_target = std::nullopt;
  double warmup_steps = 0;  // iterations; not below 0
};
// Half a wave of the cosine from the initial rate (or warmup_target) down to its alpha-fold.
class COHORT_API CosineDecay final : public LearningRateSchedule {
 public:
  // Errors: InvalidArgument (names the option and its value).
  explicit CosineDecay(const CosineDecayOptions& options);
  double at(int64_t iteration) const override;
  const CosineDecayOptions& options() const { return options_; }

 private:
  CosineDecayOptions options_;
};

}  // namespace cohort::optim
