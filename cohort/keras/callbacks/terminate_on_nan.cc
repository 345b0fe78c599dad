#include "cohort/keras/callbacks/terminate_on_nan.h"

#include <cmath>

#include "cohort/core/observe/logging.h"
#include "cohort/keras/model/model.h"

namespace cohort::keras::callbacks {

void TerminateOnNaN::on_train_batch_end(int64_t batch, const Logs& logs) {
  stop_unless_finite(logs, "after batch ", batch);
}

void TerminateOnNaN::on_epoch_end(int64_t epoch, Logs& logs) {
  if (!model().stop_training()) stop_unless_finite(logs, "after epoch ", epoch);
}

void TerminateOnNaN::stop_unless_finite(const Logs& logs, const char* when, int64_t number) {
  const auto loss = logs.find("loss");
  if (!loss || std::isfinite(*loss)) return;
  if (is_chief()) {
    internal::log_warning("TerminateOnNaN: the loss is ", *loss, " ", when, number + 1,
                          "; training stops");
  }
  model().set_stop_training(true);
}

}  // namespace cohort::keras::callbacks
