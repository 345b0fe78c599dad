#include "cohort/keras/callbacks/terminate_on_nan.h"

#include <cmath>

#include "cohort/core/logging.h"
#include "cohort/keras/model.h"

namespace cohort::keras::callbacks {

void TerminateOnNaN::on_train_batch_end(int64_t batch, const Logs& logs) {
  const auto loss = logs.find("loss");
  if (!loss || std::isfinite(*loss)) return;
  if (is_chief()) {
    internal::log_warning("TerminateOnNaN: the loss is ", *loss, " after batch ", batch + 1,
                          "; training stops");
  }
  model().set_stop_training(true);
}

}  // namespace cohort::keras::callbacks
