// Tells ahead of an epoch's end that callbacks look for numbers that its logs will not have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cohort/keras/model/callback_list.h"

namespace cohort::internal {

struct LogUse {
  static std::vector<LogRead> reads(const keras::callbacks::Callback& callback) {
    return callback.log_reads();
  }
  static std::optional<std::vector<std::string>> additions(
      const keras::callbacks::Callback& callback) {
    return callback.log_additions();
  }
};

// What fit knows of its logs.
struct KnownLogs {
  bool validates = false;
  bool validates_first_epoch = false;
  // The metrics after the first step; missing: before it, when names of training are not known yet.
  std::optional<std::vector<std::string>> metrics = std::nullopt;
};

struct MissingLog {
  std::string text;
  bool is_error = false;
  bool is_reported_here = true;  // by this task
};

// The names that are missing for certain, or are no metric's. Before the first step these are of
// validation; after it, all others. Where a callback ahead may add numbers to the logs, as one of
// the user's may, nothing is known.
std::vector<MissingLog> missing_logs(const keras::callbacks::CallbackList& callbacks,
                                     const KnownLogs& known);
// Errors: InvalidArgument (a missing name without which a callback fails); warns of the others.
void report_missing_logs(const std::vector<MissingLog>& missing);

}  // namespace cohort::internal
