// Callbacks that change the learning rate between epochs. They need an optimizer whose learning
// rate is a number, and add "lr" to the logs.
//
//   keras::callbacks::LearningRateScheduler falling([](int64_t epoch, double rate) {
//     return epoch < 3 ? rate : rate * 0.9;
//   });
//   keras::callbacks::ReduceLROnPlateau patient({.monitor = "val_loss", .factor = 0.2});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/callbacks/monitor.h"
#include "cohort/keras/model/callback.h"

namespace cohort::keras::callbacks {

// Thread safety: as Callback.
class COHORT_API LearningRateScheduler : public Callback {
 public:
  // The rate of an epoch, out of its number, from 0, and the rate before it.
  using Schedule = std::function<double(int64_t epoch, double rate)>;

  // verbose 1: logs each change. Errors: InvalidArgument (an empty function); of fit:
  // FailedPrecondition (an optimizer with a schedule of its own).
  explicit LearningRateScheduler(Schedule schedule, int verbose = 0);

  void on_train_begin() override;
  void on_epoch_begin(int64_t epoch) override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<LearningRateScheduler>(*this, {"lr"});
  }

  Schedule schedule_;
  int verbose_;
};

struct ReduceLROnPlateauOptions {
  std::string monitor = "val_loss";
  double factor = 0.1;    // in (0, 1): what the rate is multiplied by
  int64_t patience = 10;  // epochs without anything better that are waited through
  int verbose = 0;
  // "min", "max", or "auto": "max" where the name of `monitor` ends in "acc", "accuracy" or "auc",
  // a number after it apart ("auc_1").
  std::string mode = "auto";
  double min_delta = 1e-4;  // what counts as better
  int64_t cooldown = 0;     // epochs after a reduction that do not count
  double min_lr = 0;
};

// Thread safety: as Callback.
class COHORT_API ReduceLROnPlateau : public Callback {
 public:
  // Errors: InvalidArgument (a factor that is not in (0, 1); patience, cooldown or min_lr below 0;
  // a mode); of fit, before the first step: FailedPrecondition (an optimizer with a schedule).
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});

  void on_train_begin() override;
  void on_epoch_end(int64_t epoch, Logs& logs) override;

 private:
  std::optional<std::vector<std::string>> log_additions() const override {
    return internal::added_by<ReduceLROnPlateau>(*this, {"lr"});
  }
  std::vector<internal::LogRead> log_reads() const override { return {monitor_.log_read()}; }

  ReduceLROnPlateauOptions options_;
  internal::Monitor monitor_;
  double best_ = 0;
  int64_t wait_ = 0;
  int64_t cooldown_left_ = 0;
};

}  // namespace cohort::keras::callbacks
