// Ends training when the loss is no longer a number.
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/callback.h"

namespace cohort::keras::callbacks {

// Looks at the loss of every batch, which costs a reading of the metrics. Thread safety: as Callback.
class COHORT_API TerminateOnNaN : public Callback {
 public:
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
};

}  // namespace cohort::keras::callbacks
