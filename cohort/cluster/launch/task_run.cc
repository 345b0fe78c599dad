#include "cohort/cluster/launch/task_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

std::string prefix_of(const PlannedTask& task, int number, bool colored) {
  if (!colored) return str("[", task.label(), "] ");
  constexpr int kFirstColor = 31;  // red; six of them can be told apart
  return str("\x1b[", kFirstColor + number % 6, "m[", task.label(), "]\x1b[0m ");
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return;  // who read it is gone: the tasks go on
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
}

// What the process writes to, and what is read here without blocking.
std::pair<UniqueFd, UniqueFd> make_pipe(const PlannedTask& task) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw ResourceExhaustedError(
        str("cannot make a pipe for ", task.label(), ": ", std::strerror(errno)));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {UniqueFd(ends[1]), UniqueFd(ends[0])};
}

}  // namespace

TaskRun::TaskRun(const JobPlan& plan, const PlannedTask& task, int number, TaskOutput out,
                 TaskOutput err)
    : plan_(plan),
      task_(task),
      stdout_{UniqueFd(), LinePrefixer(prefix_of(task, number, out.colored)), out.fd},
      stderr_{UniqueFd(), LinePrefixer(prefix_of(task, number, err.colored)), err.fd} {}

void TaskRun::start() {
  std::vector<std::string> environment = own_environment();
  for (const std::string& variable : task_.environment) {
    const size_t equals = variable.find('=');
    set_variable(environment, variable.substr(0, equals), variable.substr(equals + 1));
  }
  auto [out_end, out] = make_pipe(task_);
  auto [err_end, err] = make_pipe(task_);
  process_ = std::make_unique<ChildProcess>(SpawnOptions{.program = plan_.program,
                                                         .arguments = plan_.arguments,
                                                         .environment = std::move(environment),
                                                         .stdout_fd = out_end.get(),
                                                         .stderr_fd = err_end.get(),
                                                         .own_group = true,
                                                         .dies_with_parent = true,
                                                         .cores = task_.cores});
  stdout_.pipe = std::move(out);
  stderr_.pipe = std::move(err);
  if (num_starts_++ == 0) first_start_ = Clock::now();
  status_.reset();
}

void TaskRun::send_signal(int signal) {
  if (process_) process_->send_signal(signal);
}

bool TaskRun::collect() {
  if (!process_) return false;
  const auto status = process_->poll();
  if (!status) return false;
  forward_output();
  // What the task started itself may hold the pipes open: nobody waits for that.
  finish(stdout_);
  finish(stderr_);
  process_.reset();
  status_ = status;
  last_end_ = Clock::now();
  return true;
}

void TaskRun::forward_output() {
  drain(stdout_);
  drain(stderr_);
}

void TaskRun::drain(Stream& stream) {
  std::array<char, 16 << 10> block;
  while (stream.pipe.valid()) {
    const ssize_t count = ::read(stream.pipe.get(), block.data(), block.size());
    if (count > 0) {
      write_all(stream.fd, stream.lines.add({block.data(), static_cast<size_t>(count)}));
    } else if (count < 0 && errno == EAGAIN) {
      return;
    } else if (count == 0 || errno != EINTR) {
      finish(stream);
    }
  }
}

void TaskRun::finish(Stream& stream) {
  write_all(stream.fd, stream.lines.finish());
  stream.pipe.reset();
}

TaskRun::Clock::duration TaskRun::time() const {
  if (num_starts_ == 0) return Clock::duration::zero();
  return (process_ ? Clock::now() : last_end_) - first_start_;
}

}  // namespace cohort::internal
