// Ends training when the loss is no longer a number.
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/model/callback.h"

namespace cohort::keras::callbacks {

// Looks at the loss of every batch, which costs a reading of the metrics, and at that of the epoch:
// where workers run steps by themselves, some of the batches have not ended when their hooks are
// called.
// Thread safety: as Callback.
class COHORT_API TerminateOnNaN : public Callback {
 public:
  void on_train_batch_end(int64_t batch, const Logs& logs) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<TerminateOnNaN>(*this);
  }

  void stop_unless_finite(const Logs& logs, const char* when, int64_t number);
};

}  // namespace cohort::keras::callbacks
