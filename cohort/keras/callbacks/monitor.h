// A number of the logs that is to become small, or large.
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/model/log_read.h"
#include "cohort/keras/model/logs.h"

namespace cohort::internal {

// Thread safety: none.
class COHORT_API Monitor {
 public:
  // mode: "min", "max", or "auto", which is "max" for names that end in "acc", "accuracy" or "auc",
  // or in one of them and a number ("auc_1").
  // Errors: InvalidArgument (another mode; an empty name; names the callback).
  Monitor(const char* callback, std::string name, const std::string& mode, double min_delta = 0);

  const std::string& name() const { return name_; }
  // Missing: a warning says what there is.
  std::optional<double> read(const keras::Logs& logs) const;
  LogRead log_read(bool after_steps = false) const;
  // Whether `value` is better than `other` by more than min_delta.
  bool is_better(double value, double other) const;
  // What every number is better than.
  double worst() const;

 private:
  const char* callback_;
  std::string name_;
  bool larger_ = false;
  double min_delta_;
};

}  // namespace cohort::internal
