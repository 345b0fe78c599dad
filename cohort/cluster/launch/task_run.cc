#include "cohort/cluster/launch/task_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

std::string prefix_of(const PlannedTask& task, int number, bool colored) {
  if (!colored) return str("[", task.label(), "] ");
  constexpr int kFirstColor = 31;  // red; six of them can be told apart
  return str("\x1b[", kFirstColor + number % 6, "m[", task.label(), "]\x1b[0m ");
}

constexpr size_t kBlockBytes = 16 << 10;
// A task that writes without end leaves time for signals and for the other tasks.
constexpr int kBlocksPerTurn = 16;
// The time that processes which a task's first process has left running have to end after SIGTERM.
constexpr std::chrono::seconds kLeftoverGrace{3};
constexpr std::chrono::milliseconds kLookInterval{20};

// A pipe: the end to which the process writes, and the end that is read here without blocking.
std::pair<UniqueFd, UniqueFd> make_pipe(const PlannedTask& task) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw ResourceExhaustedError(
        str("cannot make a pipe for ", task.label(), ": ", errno_text(errno)));
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {UniqueFd(ends[1]), UniqueFd(ends[0])};
}

}  // namespace

TaskRun::TaskRun(const JobPlan& plan, const PlannedTask& task, int number, TaskLines out,
                 TaskLines err)
    : plan_(plan),
      task_(task),
      stdout_{UniqueFd(), LinePrefixer(prefix_of(task, number, out.colored)), out.sink},
      stderr_{UniqueFd(), LinePrefixer(prefix_of(task, number, err.colored)), err.sink} {}

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
  last_start_ = Clock::now();
  if (num_starts_++ == 0) first_start_ = last_start_;
  status_.reset();
  was_signalled_ = false;
}

void TaskRun::send_signal(int signal) {
  if (process_) was_signalled_ |= process_->send_signal(signal);
}

// SIGTERM may end a shell at once while the program that it has started is still saving. The
// program then has the time that the launcher gives to tasks. Processes that were left running
// without a signal get one.
bool TaskRun::is_group_over() {
  const Clock::time_point now = Clock::now();
  if (look_at_ && now < *look_at_) return false;
  if (!process_->leaves_others()) return true;
  if (!kill_at_) {
    kill_at_ = was_signalled_ ? Clock::time_point::max() : now + kLeftoverGrace;
    if (!was_signalled_) process_->send_signal(SIGTERM);
  }
  look_at_ = now + kLookInterval;
  return now >= *kill_at_;
}

bool TaskRun::collect() {
  if (!process_ || !process_->has_ended() || !is_group_over()) return false;
  status_ = process_->poll();
  // All that the task wrote, though a process that left its group may hold the pipes open and go on
  // writing.
  finish(stdout_);
  finish(stderr_);
  process_.reset();
  look_at_.reset();
  kill_at_.reset();
  last_end_ = Clock::now();
  return true;
}

void TaskRun::forward_output() {
  drain(stdout_);
  drain(stderr_);
}

bool TaskRun::read_block(Stream& stream, size_t most) {
  std::array<char, kBlockBytes> block;
  ssize_t count = 0;
  do {
    count = ::read(stream.pipe.get(), block.data(), std::min(most, block.size()));
  } while (count < 0 && errno == EINTR);
  if (count > 0) {
    stream.sink.add(stream.lines.add({block.data(), static_cast<size_t>(count)}));
    return true;
  }
  if (count == 0 || errno != EAGAIN) stream.pipe.reset();
  return false;
}

void TaskRun::drain(Stream& stream) {
  for (int i = 0; i < kBlocksPerTurn; ++i) {
    if (!stream.pipe.valid() || !stream.sink.has_room()) return;
    if (!read_block(stream, kBlockBytes)) return;
  }
}

void TaskRun::finish(Stream& stream) {
  int held = 0;
  if (stream.pipe.valid() && ::ioctl(stream.pipe.get(), FIONREAD, &held) != 0) held = 0;
  for (auto left = static_cast<size_t>(held); left > 0;) {
    const size_t size = std::min(left, kBlockBytes);
    if (!read_block(stream, size)) break;
    left -= size;
  }
  stream.sink.add(stream.lines.finish());
  stream.pipe.reset();
}

TaskRun::Clock::duration TaskRun::time() const {
  if (num_starts_ == 0) return Clock::duration::zero();
  return (process_ ? Clock::now() : last_end_) - first_start_;
}

}  // namespace cohort::internal
