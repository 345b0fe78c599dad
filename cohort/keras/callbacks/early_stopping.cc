#include "cohort/keras/callbacks/early_stopping.h"

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/keras/model/model.h"

namespace cohort::keras::callbacks {

EarlyStopping::EarlyStopping(EarlyStoppingOptions options)
    : options_(std::move(options)),
      monitor_("EarlyStopping", options_.monitor, options_.mode, options_.min_delta) {
  if (options_.patience < 0) {
    throw InvalidArgumentError(
        internal::str("EarlyStopping: patience is ", options_.patience, ", below 0"));
  }
}

void EarlyStopping::on_train_begin() {
  best_ = monitor_.worst();
  wait_ = best_epoch_ = stopped_epoch_ = 0;
  best_weights_.clear();
}

void EarlyStopping::on_epoch_end(int64_t epoch, Logs& logs) {
  const auto value = monitor_.read(logs);
  if (!value || epoch < options_.start_from_epoch) return;
  const ModelHandle own = model();
  if (options_.restore_best_weights && best_weights_.empty()) best_weights_ = own.get_weights();
  ++wait_;
  if (monitor_.is_better(*value, best_)) {
    best_ = *value;
    best_epoch_ = epoch;
    if (options_.restore_best_weights) best_weights_ = own.get_weights();
    if (!options_.baseline || monitor_.is_better(*value, *options_.baseline)) wait_ = 0;
    return;
  }
  if (wait_ < std::max<int64_t>(options_.patience, 1) || epoch == 0) return;
  stopped_epoch_ = epoch;
  own.set_stop_training(true);
  if (options_.restore_best_weights) own.set_weights(best_weights_);
  if (options_.verbose > 0 && is_chief()) {
    internal::log_info("EarlyStopping: training stops after epoch ", epoch + 1, "; the best was ",
                       best_epoch_ + 1,
                       options_.restore_best_weights ? ", whose weights are restored" : "");
  }
}

}  // namespace cohort::keras::callbacks
