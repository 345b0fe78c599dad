#include "cohort/core/observe/line_limit.h"

#include <thread>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/start_thread.h"

namespace cohort::internal {
namespace {

LineLimitOptions complete(LineLimitOptions options) {
  if (!options.write) options.write = [](const std::string& line) { log_warning(line); };
  return options;
}

}  // namespace

LineLimit::LineLimit(std::string what, LineLimitOptions options)
    : what_(std::move(what)), options_(complete(std::move(options))) {}

void LineLimit::say(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    const Time now = std::chrono::steady_clock::now();
    if (now >= period_end_ && left_out_ == 0) {
      period_end_ = now + options_.period;
      said_ = 0;
    }
    if (said_ >= options_.most) {
      last_ = line;
      if (left_out_++ > 0) return;
      try {
        start_thread("to count lines of the log", [this] { end_period(); }).detach();
      } catch (const Error&) {
        left_out_ = 0;  // no thread is to be had: the lines are left out without a word
      }
      return;
    }
    ++said_;
  }
  options_.write(line);
}

void LineLimit::end_period() {
  std::string line;
  {
    std::unique_lock lock(mutex_);
    const Time end = period_end_;
    lock.unlock();
    std::this_thread::sleep_until(end);
    lock.lock();
    const double seconds = std::chrono::duration<double>(options_.period).count();
    line = str(left_out_, ' ', what_, " within ", seconds, " s, the last one: ", last_);
    left_out_ = 0;
  }
  options_.write(line);
}

}  // namespace cohort::internal
