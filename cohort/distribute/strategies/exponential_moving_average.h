// Moving averages of variables, which often evaluate better than the last values of a training.
//
//   train::ExponentialMovingAverage ema(0.999, {.num_updates = optimizer.iterations()});
//   ema.apply(model.trainable_variables());   // makes the averages, under the variables' strategy
//   ...
//   optimizer.minimize(loss, variables, tape);
//   ema.apply(variables);                     // after each step, in it or between steps
//   ...
//   ema.swap_weights(variables);              // evaluate with the averages
//   ema.swap_weights(variables);              // and go on
//
// An optimizer can keep averages as well, within its pass over memory: use_ema.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort {
namespace internal {
class MovingAverages;
}

namespace train {

class Trackable;

// A number, or a variable that is read each time.
class NumberOrVariable {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number> NumberOrVariable(Number number)
      : number_(static_cast<double>(number)) {}
  NumberOrVariable(Variable variable) : variable_(std::move(variable)) {}

  // Errors: those of Variable::value.
  COHORT_API double value() const;

 private:
  double number_ = 0;
  Variable variable_;
};

struct ExponentialMovingAverageOptions {
  // How many updates the variables have had: the decay is then at most (1 + n) / (10 + n), so that
  // averages move fast at first.
  std::optional<NumberOrVariable> num_updates = std::nullopt;
  // TensorFlow's, for averages of tensors that begin at 0; averages of variables begin at the
  // variables' values, and need it as little as there.
  bool zero_debias = false;
  std::string name = "ExponentialMovingAverage";
};

// A handle: copies name the same averages.
// Thread safety: apply from all replicas of a step at once; the rest from one thread while no step
// runs.
class COHORT_API ExponentialMovingAverage {
 public:
  using Options = ExponentialMovingAverageOptions;
  explicit ExponentialMovingAverage(NumberOrVariable decay, const Options& options = {});

  // average -= (1 - decay) * (average - variable), once for all replicas. Makes the averages of
  // variables that are new, which begin at their values, where the variables are; with parameter
  // servers that must be before the first step, as for other variables. In a step COLLECTIVE, with
  // the same variables. Errors: InvalidArgument (a variable of another dtype than a floating one,
  // naming it; replicas with different variables; a decay that is no number).
  void apply(const std::vector<Variable>& var_list) const;
  // The variable that holds the average; nothing: it has none.
  std::optional<Variable> average(const Variable& variable) const;
  // What that variable is called, or would be: "dense/kernel/ExponentialMovingAverage".
  std::string average_name(const Variable& variable) const;
  // Exchanges the values of the variables and of their averages.
  // Errors: FailedPrecondition (in a step), NotFound (a variable without an average: names it).
  void swap_weights(const std::vector<Variable>& var_list) const;
  // The averages, in the order in which they were made.
  std::vector<Variable> variables() const;
  const std::string& name() const;
  // For a Checkpoint: the list "averages". In TensorFlow averages are saved as variables, which
  // works here, too: {"averaged_weights", ...}.
  std::shared_ptr<Trackable> trackable() const;

 private:
  internal::Handle<internal::MovingAverages, "ExponentialMovingAverage"> averages_;
};

}  // namespace train
}  // namespace cohort
