#include "cohort/testing/task_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "cohort/core/text.h"
#include "cohort/testing/log_file.h"
#include "cohort/testing/task_report.h"

namespace cohort::internal {
namespace {

constexpr int kTailLines = 50;

UniqueFd open_log(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (fd.valid()) return fd;
  const std::string message = str("cannot open the log ", path, ": ", errno_text(errno));
  if (errno == ENOENT || errno == ENOTDIR) throw NotFoundError(message);
  if (errno == EACCES || errno == EPERM) throw PermissionDeniedError(message);
  throw ResourceExhaustedError(message);
}

}  // namespace

TaskProcess::TaskProcess(TaskSetup setup) : setup_(std::move(setup)) {}

void TaskProcess::start() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw ResourceExhaustedError(str("cannot make a pipe for ", name(), ": ", errno_text(errno)));
  }
  UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  // Only this end: the task's writes are to block while the runner is busy.
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  std::error_code no_log_yet;
  const auto log_size = std::filesystem::file_size(setup_.log_path, no_log_yet);
  const UniqueFd log = open_log(setup_.log_path);
  process_ = std::make_unique<ChildProcess>(SpawnOptions{.arguments = setup_.arguments,
                                                         .environment = setup_.environment,
                                                         .stdout_fd = log.get(),
                                                         .stderr_fd = log.get(),
                                                         .extra_fd = write_end.get(),
                                                         .dies_with_parent = true,
                                                         .network_fd = setup_.network_fd});
  log_offset_ = no_log_yet ? 0 : static_cast<int64_t>(log_size);
  report_pipe_ = std::move(read_end);
  report_.clear();
  outcome_.reset();
}

void TaskProcess::read_report() {
  std::array<char, 16 << 10> block;
  while (report_pipe_.valid()) {
    const ssize_t count = ::read(report_pipe_.get(), block.data(), block.size());
    if (count > 0) {
      report_.append(block.data(), static_cast<size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      report_pipe_.reset();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

void TaskProcess::poll(int end_position) {
  if (!process_) return;
  const auto status = process_->poll();
  if (!status) return;
  read_report();  // what it wrote just before it ended
  outcome_ = outcome_of(*status);
  end_position_ = end_position;
  discard();
}

testing::TaskOutcome TaskProcess::outcome_of(const ExitStatus& status) const {
  testing::TaskOutcome outcome{.task = setup_.id};
  const auto report = decode_report(report_);
  if (status.signal) {
    outcome.code = Code::kUnavailable;
    outcome.error = str("ended by ", signal_name(*status.signal));
  } else if (!status.exit_code) {
    outcome.code = Code::kUnknown;
    outcome.error = describe(status);
  } else if (!report) {
    outcome.code = Code::kUnknown;
    outcome.error = str("exited with code ", *status.exit_code, " before its function returned");
  } else if (report->code != Code::kOk) {
    outcome.code = report->code;
    outcome.error = report->text;
  } else if (*status.exit_code != 0) {
    outcome.code = Code::kUnknown;
    outcome.error = str("exited with code ", *status.exit_code, " after its function had returned");
  } else {
    outcome.value = report->text;
  }
  return outcome;
}

bool TaskProcess::send_signal(int signal) { return process_ && process_->send_signal(signal); }

void TaskProcess::discard() {
  process_.reset();
  report_pipe_.reset();
}

void TaskProcess::time_out(int end_position) {
  discard();
  end_position_ = end_position;
  outcome_ = testing::TaskOutcome{.task = setup_.id,
                                  .code = Code::kDeadlineExceeded,
                                  .error = "killed, because the run's deadline had passed"};
}

std::string TaskProcess::log_tail() const {
  const std::string lines = last_lines(setup_.log_path, kTailLines);
  if (lines.empty()) return str("(the log of ", name(), " is empty)\n");
  return str("--- the end of the log of ", name(), " ---\n", lines,
             lines.back() == '\n' ? "" : "\n");
}

}  // namespace cohort::internal
