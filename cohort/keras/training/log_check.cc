#include "cohort/keras/training/log_check.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"

namespace cohort::internal {

namespace {

constexpr std::string_view kOfValidation = "val_";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += str(text.empty() ? "" : ", ", name);
  return text;
}

// Why there will be no such number when the callback looks for it; empty: there may be one.
class Absence {
 public:
  Absence(const KnownLogs& known, const std::vector<std::string>& added)
      : known_(known), added_(added) {}

  std::string of(const LogRead& read) const {
    const bool is_of_validation = read.name.starts_with(kOfValidation);
    if (!known_.metrics) return is_of_validation ? of_validation(read) : "";
    if (is_of_validation) return "";
    if (contains(*known_.metrics, read.name)) return "";
    if (!read.after_steps && contains(added_, read.name)) return "";
    return str("there is none among the metrics; there are: ", joined(*known_.metrics));
  }
  // A metric may be one that validation alone makes.
  std::string doubt_of(const LogRead& read) const {
    if (!known_.metrics || !read.name.starts_with(kOfValidation) || !known_.validates) return "";
    if (contains(*known_.metrics, read.name.substr(kOfValidation.size()))) return "";
    return str("none of the metrics has this name after ", quoted(kOfValidation),
               "; there are: ", joined(*known_.metrics));
  }

 private:
  std::string of_validation(const LogRead& read) const {
    if (contains(added_, read.name)) return "";
    if (read.after_steps) return "logs after steps have numbers of training alone";
    if (!known_.validates) return "fit has no validation data (.validation_data)";
    if (read.is_required && !known_.validates_first_epoch) {
      return "the first epoch is one without validation (.validation_freq)";
    }
    return "";
  }

  const KnownLogs& known_;
  const std::vector<std::string>& added_;
};

}  // namespace

std::vector<MissingLog> missing_logs(const keras::callbacks::CallbackList& callbacks,
                                     const KnownLogs& known) {
  std::vector<MissingLog> missing;
  std::optional<std::vector<std::string>> added = std::vector<std::string>();
  const std::vector<std::string> none;
  for (const auto& callback : callbacks.callbacks()) {
    for (const LogRead& read : LogUse::reads(*callback)) {
      if (!added && !read.after_steps) continue;
      const Absence absence(known, read.after_steps ? none : *added);
      const std::string why = absence.of(read);
      const std::string doubt = why.empty() ? absence.doubt_of(read) : "";
      if (why.empty() && doubt.empty()) continue;
      missing.push_back({.text = str("callback ", quoted(callback->name()), ": ", read.use,
                                     why.empty() ? ": there may be no " : ": there will be no ",
                                     quoted(read.name), ": ", why, doubt),
                         .is_error = read.is_required && doubt.empty(),
                         .is_reported_here = callback->is_chief()});
      if (!read.is_required) break;  // without it the callback reads nothing else
    }
    const auto more = LogUse::additions(*callback);
    if (!more) added.reset();
    if (added) added->insert(added->end(), more->begin(), more->end());
  }
  return missing;
}

void report_missing_logs(const std::vector<MissingLog>& missing) {
  for (const MissingLog& one : missing) {
    if (!one.is_error && one.is_reported_here) log_warning("fit: ", one.text);
  }
  for (const MissingLog& one : missing) {
    if (one.is_error) throw InvalidArgumentError(str("fit: ", one.text));
  }
}

}  // namespace cohort::internal
