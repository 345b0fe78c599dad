#include "cohort/keras/callbacks/learning_rate.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/keras/model/model.h"
#include "cohort/keras/optimizers/optimizer_state.h"

namespace cohort::keras::callbacks {

using internal::str;

LearningRateScheduler::LearningRateScheduler(Schedule schedule, int verbose)
    : schedule_(std::move(schedule)), verbose_(verbose) {
  if (!schedule_) throw InvalidArgumentError("LearningRateScheduler got an empty function");
}

void LearningRateScheduler::on_train_begin() {
  internal::OptimizerState::of(model().optimizer()).check_rate_can_be_set();
}

void LearningRateScheduler::on_epoch_begin(int64_t epoch) {
  const auto& optimizer = model().optimizer();
  const double rate = schedule_(epoch, optimizer.learning_rate());
  optimizer.set_learning_rate(rate);
  if (verbose_ > 0 && is_chief()) {
    internal::log_info("LearningRateScheduler: the learning rate of epoch ", epoch + 1, " is ",
                       rate);
  }
}

void LearningRateScheduler::on_epoch_end(int64_t, Logs& logs) {
  logs.set("lr", model().optimizer().learning_rate());
}

ReduceLROnPlateau::ReduceLROnPlateau(ReduceLROnPlateauOptions options)
    : options_(std::move(options)),
      monitor_("ReduceLROnPlateau", options_.monitor, options_.mode, options_.min_delta) {
  if (!(options_.factor > 0 && options_.factor < 1)) {
    throw InvalidArgumentError(
        str("ReduceLROnPlateau: factor is ", options_.factor, "; it must be between 0 and 1"));
  }
  const auto check = [](const char* option, auto value) {
    if (value >= 0) return;
    throw InvalidArgumentError(
        str("ReduceLROnPlateau: ", option, " is ", value, "; it must be at least 0"));
  };
  check("patience", options_.patience);
  check("cooldown", options_.cooldown);
  check("min_lr", options_.min_lr);
}

void ReduceLROnPlateau::on_train_begin() {
  internal::OptimizerState::of(model().optimizer()).check_rate_can_be_set();
  best_ = monitor_.worst();
  wait_ = cooldown_left_ = 0;
}

void ReduceLROnPlateau::on_epoch_end(int64_t epoch, Logs& logs) {
  const auto& optimizer = model().optimizer();
  const double rate = optimizer.learning_rate();
  logs.set("lr", rate);
  const auto value = monitor_.read(logs);
  if (!value) return;
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    wait_ = 0;
  }
  if (monitor_.is_better(*value, best_)) {
    best_ = *value;
    wait_ = 0;
    return;
  }
  if (cooldown_left_ > 0 || ++wait_ < options_.patience || rate <= options_.min_lr) return;
  const double reduced = std::max(rate * options_.factor, options_.min_lr);
  optimizer.set_learning_rate(reduced);
  cooldown_left_ = options_.cooldown;
  wait_ = 0;
  if (options_.verbose > 0 && is_chief()) {
    internal::log_info("ReduceLROnPlateau: after epoch ", epoch + 1, " the learning rate is ",
                       reduced);
  }
}

}  // namespace cohort::keras::callbacks
