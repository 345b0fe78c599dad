// More learning rates that change with the iteration, as Keras 2.15 has them; see schedule.h.
#pragma once

#include <cstdint>

#include "cohort/core/export.h"
#include "cohort/optim/schedule.h"

namespace cohort::optim {

struct PolynomialDecayOptions {
  double initial_learning_rate = 0;
  double decay_steps = 0;  // iterations; above 0
  double end_learning_rate = 0.0001;
  double power = 1;    // of the polynomial; 1: a straight line
  bool cycle = false;  // begin anew, over more iterations, each time the end is reached
};
// (initial - end) * (1 - min(iteration, decay_steps) / decay_steps) ^ power + end. With cycle
// decay_steps is the least multiple of itself that iteration does not exceed.
class COHORT_API PolynomialDecay final : public LearningRateSchedule {
 public:
  // Errors: InvalidArgument (names the option and its value).
  explicit PolynomialDecay(const PolynomialDecayOptions& options);
  double at(int64_t iteration) const override;
  const PolynomialDecayOptions& options() const { return options_; }

 private:
  PolynomialDecayOptions options_;
};

struct InverseTimeDecayOptions {
  double initial_learning_rate = 0;
  double decay_steps = 0;  // iterations; above 0
  double decay_rate = 0;   // not below 0
  bool staircase = false;  // decay once every decay_steps instead of smoothly
};
// initial_learning_rate / (1 + decay_rate * iteration / decay_steps).
class COHORT_API InverseTimeDecay final : public LearningRateSchedule {
 public:
  // Errors: InvalidArgument (names the option and its value).
  explicit InverseTimeDecay(const InverseTimeDecayOptions& options);
  double at(int64_t iteration) const override;
  const InverseTimeDecayOptions& options() const { return options_; }

 private:
  InverseTimeDecayOptions options_;
};

struct CosineDecayRestartsOptions {
  double initial_learning_rate = 0;
  double first_decay_steps = 0;  // iterations of the first period; above 0
  double t_mul = 2;              // each period is so many times as long as the one before; from 1
  double m_mul = 1;              // and begins with so many times its rate; not below 0
  double alpha = 0;              // the share of the initial rate that remains at the end, in [0, 1]
};
// Half a wave of the cosine down, then again from the top (Loshchilov and Hutter, 2016).
class COHORT_API CosineDecayRestarts final : public LearningRateSchedule {
 public:
  // Errors: InvalidArgument (names the option and its value).
  explicit CosineDecayRestarts(const CosineDecayRestartsOptions& options);
  double at(int64_t iteration) const override;
  const CosineDecayRestartsOptions& options() const { return options_; }

 private:
  CosineDecayRestartsOptions options_;
};

}  // namespace cohort::optim
