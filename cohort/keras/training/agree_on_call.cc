#include "cohort/keras/training/agree_on_call.h"

#include <optional>
#include <string>
#include <utility>

#include "cohort/collective/task_collectives.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// The options that a call was given, but for those that are as nobody gives them: texts that errors
// show are short.
class GivenOptions {
 public:
  template <class T>
  GivenOptions& add(const char* name, const T& value, const T& usual) {
    return value == usual ? *this : append(name, value);
  }
  GivenOptions& add(const char* name, const std::optional<int64_t>& value) {
    return value ? append(name, *value) : *this;
  }
  std::string take() { return text_.empty() ? "no options" : std::move(text_); }

 private:
  template <class T>
  GivenOptions& append(const char* name, const T& value) {
    text_ += str(text_.empty() ? "" : ", ", name, "=", value);
    return *this;
  }

  std::string text_;
};

void agree(StrategyCore& core, const char* call, const std::string& options) {
  collective::agree_between_tasks(core.group(), call, options);
}

}  // namespace

void agree_on_call(StrategyCore& core, const keras::FitOptions& options) {
  if (!core.group().spans_tasks()) return;
  const bool every_time = !options.validation_freq.is_list();
  agree(core, "fit",
        GivenOptions()
            .add("batch_size", options.batch_size)
            .add<int64_t>("epochs", options.epochs, 1)
            .add<int64_t>("initial_epoch", options.initial_epoch, 0)
            .add("steps_per_epoch", options.steps_per_epoch)
            .add("shuffle", options.shuffle ? 1 : 0, 1)
            .add("validation_data", options.validation_data ? 1 : 0, 0)
            .add("validation_split", options.validation_split, 0.0)
            .add("validation_batch_size", options.validation_batch_size)
            .add("validation_steps", options.validation_steps)
            .add("validation_freq", every_time ? options.validation_freq.every() : 0, 1)
            .take());
}

void agree_on_call(StrategyCore& core, const keras::EvaluateOptions& options) {
  if (!core.group().spans_tasks()) return;
  agree(core, "evaluate",
        GivenOptions().add("batch_size", options.batch_size).add("steps", options.steps).take());
}

void agree_on_call(StrategyCore& core, const keras::PredictOptions& options) {
  if (!core.group().spans_tasks()) return;
  agree(core, "predict",
        GivenOptions().add("batch_size", options.batch_size).add("steps", options.steps).take());
}

}  // namespace cohort::internal
