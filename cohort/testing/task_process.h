// One task of a MultiProcessRunner: its process, its report, its log, its outcome.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/testing/multi_process_runner.h"

namespace cohort::internal {

// What does not change from start to restart.
struct TaskSetup {
  testing::TaskId id;
  std::string address;
  std::string log_path;
  std::vector<std::string> arguments;    // of the process
  std::vector<std::string> environment;  // of the process
  int network_fd = -1;                   // its network namespace; negative: this process's
};

// Thread safety: none.
class TaskProcess {
 public:
  explicit TaskProcess(TaskSetup setup);

  const TaskSetup& setup() const { return setup_; }
  std::string name() const { return to_string(setup_.id); }

  // Errors: as ChildProcess; ResourceExhausted (no pipe).
  void start();
  bool is_running() const { return process_ != nullptr; }
  // How it ended; nullopt while it runs and before it was started.
  const std::optional<testing::TaskOutcome>& outcome() const { return outcome_; }
  // In which position of all tasks it ended: the caller's number.
  int end_position() const { return end_position_; }

  // Descriptors to wait for: the process's end, and its report (negative once that is complete).
  int pidfd() const { return process_ ? process_->pidfd() : -1; }
  int report_fd() const { return report_pipe_.get(); }
  // Takes what the pipe holds.
  void read_report();
  // Sets the outcome if the process has ended.
  void poll(int end_position);
  bool send_signal(int signal);
  // Ends it without an outcome.
  void discard();
  // Ends it because the run's time is up.
  void time_out(int end_position);

  // The place in the log at which the output since the last start begins.
  int64_t log_offset() const { return log_offset_; }
  // The end of the log with a heading, for messages.
  std::string log_tail() const;

 private:
  testing::TaskOutcome outcome_of(const ExitStatus& status) const;

  TaskSetup setup_;
  std::unique_ptr<ChildProcess> process_;
  UniqueFd report_pipe_;
  std::string report_;
  int64_t log_offset_ = 0;
  std::optional<testing::TaskOutcome> outcome_;
  int end_position_ = 0;
};

}  // namespace cohort::internal
