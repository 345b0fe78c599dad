// Writes the logs of each epoch as a line of a CSV file.
//
//   model.fit(dataset, {.callbacks = {keras::callbacks::CSVLogger("training.csv")}});
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/model/callback.h"

namespace cohort {
namespace internal {
class UniqueFd;
}

namespace keras::callbacks {

struct CSVLoggerOptions {
  std::string separator = ",";
  bool append = false;  // to a file that is there, without another header
};

// Its columns are those of the first epoch, and where fit has validation data that this epoch makes
// no use of (validation_freq) one of "val_" for each; what an epoch lacks is NA. Only the chief
// writes; each line is in the file when the epoch is over. Where it cannot be written whole, since
// the disk is full or the file as long as RLIMIT_FSIZE allows, say, training goes on without the
// file, which is logged.
// Thread safety: as Callback.
class COHORT_API CSVLogger : public Callback {
 public:
  // Errors: InvalidArgument (an empty name); of fit, where the file cannot be opened:
  // PermissionDenied, NotFound, InvalidArgument (a directory).
  explicit CSVLogger(std::string filename, CSVLoggerOptions options = {});

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  void on_train_error() override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<CSVLogger>(*this);
  }

  std::string filename_;
  CSVLoggerOptions options_;
  std::shared_ptr<internal::UniqueFd> file_;
  bool needs_header_ = true;
  std::vector<std::string> columns_;

  void set_columns(const Logs& logs);
};

}  // namespace keras::callbacks
}  // namespace cohort
