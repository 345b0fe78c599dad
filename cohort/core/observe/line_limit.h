// Limits the lines of one kind in the log: a few are written, and then one that says how many more
// there were. Lines that others can cause, as often as they like, must not fill a disk.
//
//   static auto* const refusals = new LineLimit("connections were refused");
//   refusals->say(str("refused ", peer));
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace cohort::internal {

struct LineLimitOptions {
  int most = 5;  // lines in a period, beside the one that counts the rest
  std::chrono::milliseconds period = std::chrono::seconds(10);
  std::function<void(const std::string& line)> write = {};  // default: as warnings to the log
};

// Never destroyed: a thread waits for the end of a period in which lines were left out.
// Thread safety: any thread.
class LineLimit {
 public:
  // `what`: goes on after a number: "more lines of gRPC".
  explicit LineLimit(std::string what, LineLimitOptions options = {});
  ~LineLimit() = delete;

  void say(const std::string& line);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void end_period();

  const std::string what_;
  const LineLimitOptions options_;
  std::mutex mutex_;  // guards what follows
  Time period_end_{};
  int said_ = 0;  // in this period
  int64_t left_out_ = 0;
  std::string last_;  // of those that were left out
};

}  // namespace cohort::internal
