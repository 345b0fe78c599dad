#include "cohort/keras/training/agree_on_call.h"

#include <optional>

#include "cohort/collective/task_collectives.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

std::string text_of(const std::optional<int64_t>& number) { return number ? str(*number) : "none"; }

std::string text_of(const keras::ValidationFreq& freq) {
  return freq.is_list() ? "a list" : str(freq.every());
}

void agree(StrategyCore& core, const std::string& call) {
  if (core.group().spans_tasks()) collective::all_tasks_values(core.group(), int64_t{0}, call);
}

template <class Options>
std::string reading(const char* call, const Options& options) {
  return str(call, " with batch_size=", text_of(options.batch_size),
             ", steps=", text_of(options.steps));
}

}  // namespace

void agree_on_call(StrategyCore& core, const keras::FitOptions& options) {
  const char* const validation = options.validation_data        ? "data"
                                 : options.validation_split > 0 ? "a split"
                                                                : "none";
  agree(core, str("fit with batch_size=", text_of(options.batch_size), ", epochs=", options.epochs,
                  ", initial_epoch=", options.initial_epoch,
                  ", steps_per_epoch=", text_of(options.steps_per_epoch),
                  ", shuffle=", options.shuffle ? "true" : "false", ", validation=", validation,
                  ", validation_split=", options.validation_split,
                  ", validation_batch_size=", text_of(options.validation_batch_size),
                  ", validation_steps=", text_of(options.validation_steps),
                  ", validation_freq=", text_of(options.validation_freq)));
}

void agree_on_call(StrategyCore& core, const keras::EvaluateOptions& options) {
  agree(core, reading("evaluate", options));
}

void agree_on_call(StrategyCore& core, const keras::PredictOptions& options) {
  agree(core, reading("predict", options));
}

}  // namespace cohort::internal
