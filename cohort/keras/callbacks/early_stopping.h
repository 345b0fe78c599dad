// Ends training when it no longer helps.
//
//   keras::callbacks::EarlyStopping stop({.monitor = "val_loss", .patience = 3});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/keras/callbacks/monitor.h"
#include "cohort/keras/model/callback.h"

namespace cohort::keras::callbacks {

struct EarlyStoppingOptions {
  std::string monitor = "val_loss";
  double min_delta = 0;  // what counts as better
  int64_t patience = 0;  // epochs without anything better that are waited through
  int verbose = 0;       // 1: logs what it does
  // "min", "max", or "auto": "max" where the name of `monitor` ends in "acc", "accuracy" or "auc",
  // a number after it apart ("auc_1").
  std::string mode = "auto";
  // Epochs that are no better than this do not count as better.
  std::optional<double> baseline = std::nullopt;
  // Sets the weights of the best epoch when training is stopped.
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;
};

// Thread safety: as Callback.
class COHORT_API EarlyStopping : public Callback {
 public:
  // Errors: InvalidArgument (a mode; patience below 0).
  explicit EarlyStopping(EarlyStoppingOptions options = {});

  // The epoch after which it stopped; 0 if it did not.
  int64_t stopped_epoch() const { return stopped_epoch_; }
  int64_t best_epoch() const { return best_epoch_; }
  double best() const { return best_; }

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<EarlyStopping>(*this);
  }
  std::vector<internal::LogRead> log_reads() const override { return {monitor_.log_read()}; }

  EarlyStoppingOptions options_;
  internal::Monitor monitor_;
  double best_ = 0;
  int64_t wait_ = 0;
  int64_t best_epoch_ = 0;
  int64_t stopped_epoch_ = 0;
  std::vector<Tensor> best_weights_;
};

}  // namespace cohort::keras::callbacks
