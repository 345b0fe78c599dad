#include "cohort/keras/training/progbar_logger.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/profiler/background_profile.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/model/model.h"
#include "cohort/keras/model/progress_text.h"
#include "cohort/keras/training/fit_state.h"
#include "cohort/keras/training/training.h"

namespace cohort::keras::callbacks {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(50);
constexpr int64_t kSharedReads = 20;

std::string metrics_text(const Logs& logs) {
  std::string text;
  for (const auto& [name, value] : logs) text += " - " + name + ": " + internal::log_number(value);
  return text;
}

}  // namespace

void ProgbarLogger::on_train_begin() {
  in_fit_ = true;
  if (is_chief()) profile_ = internal::start_background_profile();
}

// After an error nobody has asked for the times.
ProgbarLogger::~ProgbarLogger() {
  if (profile_) internal::stop_background_profile(*profile_);
}

void ProgbarLogger::end_profile() {
  if (!profile_) return;
  const auto profile = internal::stop_background_profile(*std::exchange(profile_, std::nullopt));
  const std::string shares = profile ? internal::time_shares(*profile) : "";
  if (!shares.empty()) std::cout << "Time: " << shares << std::endl;
}

void ProgbarLogger::on_train_end(const Logs&) { end_profile(); }

void ProgbarLogger::begin() {
  speaks_ = is_chief();
  moves_ = params().verbose == 1 && ::isatty(STDOUT_FILENO) == 1;
  shared_ = internal::strategy_of(*model().get())->group().spans_tasks();
  const internal::FitState* fit = internal::Training::of(*internal::model_of(model())).fit;
  first_ = in_fit_ && fit != nullptr ? fit->progress->step : 0;
  done_ = first_;
  start_ = drawn_ = Clock::now();
}

void ProgbarLogger::on_epoch_begin(int64_t epoch) {
  begin();
  if (!speaks_) return;
  std::cout << internal::str("Epoch ", epoch + 1, '/', params().epochs) << std::endl;
}

double ProgbarLogger::seconds() const {
  return std::chrono::duration<double>(Clock::now() - start_).count();
}

bool ProgbarLogger::is_due(int64_t batch) const {
  if (params().verbose != 1) return false;
  if (shared_) {  // whether or not this task's stdout is a terminal
    const int64_t every = std::max<int64_t>(params().steps / kSharedReads, 1);
    return params().steps > 0 && (batch + 1) % every == 0;
  }
  return moves_ && Clock::now() - drawn_ >= kRedraw;
}

void ProgbarLogger::draw(const Logs& logs) {
  drawn_ = Clock::now();
  const std::string numbers = metrics_text(logs);
  if (!speaks_ || !moves_) return;
  const int64_t target = params().steps;
  std::string line =
      internal::str('\r', internal::count_of(done_, target), ' ', internal::bar_of(done_, target));
  const double each = seconds() / static_cast<double>(std::max<int64_t>(done_ - first_, 1));
  if (target > 0) {
    line += " - ETA: " + internal::time_left(each * static_cast<double>(target - done_));
  } else {
    line += " -" + internal::time_per(each, "step");
  }
  std::cout << line << numbers << "\x1b[K" << std::flush;
}

void ProgbarLogger::finish(const Logs& logs, const char* unit) {
  if (!speaks_) return;
  const double time = seconds();
  const double each = time / static_cast<double>(std::max<int64_t>(done_ - first_, 1));
  const int64_t target = std::max(done_, params().steps);
  std::string line = internal::count_of(done_, target);
  if (params().verbose == 1) {
    line = (moves_ ? "\r" : "") + line + ' ' + internal::bar_of(done_, target) + " - " +
           internal::whole_seconds(time) + internal::time_per(each, "step") + metrics_text(logs) +
           (moves_ ? "\x1b[K" : "");
  } else {
    line += " - " + internal::whole_seconds(time) + metrics_text(logs) + " -" +
            internal::time_per(time, unit) + " -" + internal::time_per(each, "step");
  }
  std::cout << line << std::endl;
}

void ProgbarLogger::on_train_batch_end(int64_t batch, const Logs& logs) {
  done_ = batch + 1;
  if (is_due(batch)) draw(logs);
}

void ProgbarLogger::on_epoch_end(int64_t, Logs& logs) { finish(logs, "epoch"); }

void ProgbarLogger::on_train_interrupted() {
  if (speaks_ && moves_) std::cout << std::endl;
  end_profile();
}

void ProgbarLogger::on_test_begin() {
  if (!in_fit_) begin();
}
void ProgbarLogger::on_test_batch_end(int64_t batch, const Logs& logs) {
  if (!in_fit_) on_train_batch_end(batch, logs);
}
void ProgbarLogger::on_test_end(const Logs& logs) {
  if (!in_fit_) finish(logs, "epoch");
}

void ProgbarLogger::on_predict_begin() { begin(); }
void ProgbarLogger::on_predict_batch_end(int64_t batch) { on_train_batch_end(batch, Logs()); }
void ProgbarLogger::on_predict_end() { finish(Logs(), "epoch"); }

}  // namespace cohort::keras::callbacks
