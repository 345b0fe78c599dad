// evaluate, and fit's validation.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "cohort/keras/model/callback_list.h"
#include "cohort/keras/training/step_loop.h"

namespace cohort::internal {

// Can be run more than once: each run begins at the beginning of the data. Thread safety: none.
class Evaluation {
 public:
  struct Options {
    std::optional<int64_t> batch_size = std::nullopt;
    std::optional<int64_t> steps = std::nullopt;
    const char* steps_option = "steps";      // its name, for errors
    std::function<bool()> interrupted = {};  // asked after each execution; the same in all tasks
  };

  // To be made under the strategy's scope; the data lives as long as this. Errors: as evaluate.
  Evaluation(const keras::ModelHandle& model, const keras::Data& data, const Options& options);

  StepRunner& runner() { return loop_.runner(); }
  // The number of steps; below 0: unknown.
  int64_t expected() const { return expected_steps(steps_, *loop_.input()); }
  // Resets the metrics before. Nothing: it was interrupted, after steps_done().
  std::optional<keras::Logs> run(keras::callbacks::CallbackList& callbacks);
  int64_t steps_done() const { return done_; }

 private:
  const std::shared_ptr<keras::Model> model_;
  const keras::Data data_;
  const Options options_;
  const std::shared_ptr<StrategyCore> core_;
  StepLoop loop_;
  int64_t steps_;
  int64_t done_ = 0;  // of this run
};

// evaluate. Errors: its.
keras::Logs run_evaluation(const keras::ModelHandle& model, const keras::Data& data,
                           const keras::EvaluateOptions& options);

}  // namespace cohort::internal
