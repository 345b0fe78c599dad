// What optimizers are made of and called with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/optim/schedule.h"

namespace cohort::keras::optimizers {

// A number, or a schedule of one by iteration. Thread safety: immutable.
class LearningRate {
 public:
  LearningRate(double value) : value_(value) {}
  template <class Schedule>
  requires std::is_base_of_v<optim::LearningRateSchedule, Schedule> LearningRate(Schedule schedule)
      : schedule_(std::make_shared<const Schedule>(std::move(schedule))) {}
  LearningRate(std::shared_ptr<const optim::LearningRateSchedule> schedule)
      : schedule_(std::move(schedule)) {}

  // Meaningless with a schedule.
  double value() const { return value_; }
  // nullptr for a number.
  const std::shared_ptr<const optim::LearningRateSchedule>& schedule() const { return schedule_; }

 private:
  double value_ = 0;
  std::shared_ptr<const optim::LearningRateSchedule> schedule_;
};

// What to do where a gradient, summed over all replicas, is NaN or infinite; decided alike by all
// replicas and tasks.
enum class NotFinite {
  ALLOW,  // update, as Keras does: the variables become NaN
  SKIP,   // leave all variables and iterations as they are; the first time a warning says so
  RAISE,  // leave them and throw InvalidArgument
};

// What every optimizer can do beside its formula. Their options have these members, too.
struct CommonOptions {
  // At most one of the next three may be above 0; they clip what is summed over all replicas.
  double clipnorm = 0;         // scales each variable's gradient to this norm at most
  double clipvalue = 0;        // cuts each element to [-clipvalue, clipvalue]
  double global_clipnorm = 0;  // scales all gradients so that their norm together is at most this
  // Before each update a variable loses this share of itself, times the learning rate.
  std::optional<double> weight_decay = std::nullopt;
  // Keep a moving average of each variable: average = ema_momentum * average +
  // (1 - ema_momentum) * variable, after each update.
  bool use_ema = false;
  double ema_momentum = 0.99;  // in [0, 1]
  // Every so many updates the variables are set to their averages; 0: never. At its end fit sets
  // them to their averages; so does finalize_variable_values.
  int64_t ema_overwrite_frequency = 0;
  // Only every so many-th call updates, with the mean of the gradients of these calls; they are
  // exchanged between replicas then only. A missing gradient counts as zero. The calls of one
  // update bring the same variables: others are an InvalidArgument. With parameter servers the
  // calls are each worker's own.
  int64_t gradient_accumulation_steps = 1;
  // Other than ALLOW costs a pass over the gradients.
  NotFinite not_finite = NotFinite::ALLOW;
};

struct ApplyOptions {
  // The gradients are already summed over replicas (they are equal on all of them).
  bool skip_gradients_aggregation = false;
};

using GradientsAndVariables = std::vector<std::pair<Tensor, Variable>>;

}  // namespace cohort::keras::optimizers
