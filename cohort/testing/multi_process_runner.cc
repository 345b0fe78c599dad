#include "cohort/testing/multi_process_runner.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <ostream>
#include <set>

#include "cohort/core/text.h"
#include "cohort/testing/free_ports.h"
#include "cohort/testing/log_file.h"
#include "cohort/testing/task_process.h"
#include "cohort/testing/task_report.h"

namespace cohort::testing {
namespace {

using internal::str;
using internal::TaskProcess;
using Clock = std::chrono::steady_clock;

constexpr int kPortOfOwnHosts = 2222;

bool is_job_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return internal::is_letter(c) || internal::is_digit(c) || c == '_' || c == '-';
  });
}

void check(const MultiProcessOptions& options) {
  std::set<std::string> names;
  int num_tasks = 0;
  for (const JobSize& job : options.jobs) {
    if (!is_job_name(job.name)) {
      throw InvalidArgumentError(str("a job's name must consist of letters, digits, '_' and '-', ",
                                     "but is '", job.name, "'"));
    }
    if (!names.insert(job.name).second) {
      throw InvalidArgumentError(str("job '", job.name, "' stands twice in the options"));
    }
    if (job.num_tasks < 1) {
      throw InvalidArgumentError(
          str("job '", job.name, "' must have at least 1 task, but has ", job.num_tasks));
    }
    num_tasks += job.num_tasks;
  }
  if (num_tasks == 0) throw InvalidArgumentError("MultiProcessOptions.jobs names no task");
  std::vector<std::string> strings = options.arguments;
  strings.push_back(options.function);
  for (const std::string& string : strings) {
    if (string.find('\0') == std::string::npos) continue;
    throw InvalidArgumentError("a function's name and its arguments cannot hold a zero byte");
  }
}

// {"cluster": {"worker": ["127.0.0.1:1", ...]}, "task": {"type": "worker", "index": 0}}. Job names
// and addresses hold nothing that JSON would escape.
std::string tf_config(const std::map<TaskId, std::string>& addresses, const TaskId& task) {
  std::string cluster;
  std::string job;
  for (const auto& [id, address] : addresses) {
    if (id.job == job) {
      cluster += ", ";
    } else {
      cluster += (job.empty() ? "" : "], ") + ("\"" + id.job + "\": [");
      job = id.job;
    }
    cluster += "\"" + address + "\"";
  }
  return str(R"({"cluster": {)", cluster, R"(]}, "task": {"type": ")", task.job, R"(", "index": )",
             task.index, "}}");
}

std::vector<std::string> environment_of(const MultiProcessOptions& options,
                                        const std::string& tf_config) {
  std::vector<std::string> environment = internal::own_environment();
  internal::set_variable(environment, "TF_CONFIG", tf_config);
  for (const auto& [name, value] : options.environment) {
    internal::set_variable(environment, name, value);
  }
  return environment;
}

}  // namespace

class MultiProcessRunner::Impl {
 public:
  explicit Impl(MultiProcessOptions options) : options_(std::move(options)) {
    check(options_);
    make_log_directory();
    make_tasks();
  }

  ~Impl() {
    for (auto& [id, task] : tasks_) task.discard();
    if (!owns_log_directory_) return;
    std::error_code ignored;  // a file that stays behind in /tmp is no reason to fail
    std::filesystem::remove_all(log_directory_, ignored);
  }

  TaskProcess& find(const TaskId& id) {
    const auto found = tasks_.find(id);
    if (found != tasks_.end()) return found->second;
    std::string names;
    for (const auto& [known, task] : tasks_) names += str(' ', to_string(known));
    throw NotFoundError(str("there is no task ", id, "; the tasks are:", names));
  }

  std::map<TaskId, TaskProcess>& tasks() { return tasks_; }

  VirtualNetwork& network() {
    if (network_) return *network_;
    throw FailedPreconditionError(
        "the tasks share this machine's network; ask for MultiProcessOptions::own_hosts");
  }
  int host(const TaskId& id) {
    find(id);
    return hosts_.at(id);
  }
  std::vector<int> hosts(const std::vector<TaskId>& ids) {
    std::vector<int> list;
    for (const TaskId& id : ids) list.push_back(host(id));
    return list;
  }

  void start() {
    if (deadline_) throw FailedPreconditionError("MultiProcessRunner::start was called before");
    deadline_ = Clock::now() + options_.deadline;
    for (auto& [id, task] : tasks_) task.start();
  }

  void check_started(const char* method) const {
    if (deadline_) return;
    throw FailedPreconditionError(
        str("MultiProcessRunner::", method, " was called before MultiProcessRunner::start"));
  }

  Clock::time_point deadline() const { return *deadline_; }

  // Notes the end of the task if it has come.
  void collect(TaskProcess& task) {
    if (!task.is_running()) return;
    task.poll(num_ended_);
    if (!task.is_running()) ++num_ended_;
  }

  // Waits until every task has ended.
  // Errors: DeadlineExceeded.
  void wait() {
    while (wait_for_events()) {
    }
    if (running().empty()) return;
    std::string message = str("the run did not end within ", options_.deadline.count(),
                              " ms; tasks that had not ended and were killed:");
    for (const TaskProcess* task : running()) message += str(' ', task->name());
    message += "\n";
    const std::string others = failures();
    for (TaskProcess* task : running()) {
      task->time_out(num_ended_++);
      message += task->log_tail();
    }
    throw DeadlineExceededError(message + others);
  }

  // A paragraph for each task that failed by itself, in the order in which they ended; "" if none.
  std::string failures() {
    std::string text;
    for (const TaskProcess* task : failed()) {
      const TaskOutcome& outcome = *task->outcome();
      text += str(task->name(), " failed: ", code_name(outcome.code), ": ", outcome.error, "\n",
                  task->log_tail());
    }
    return text;
  }

  // In the order in which they ended.
  std::vector<const TaskProcess*> failed() const {
    std::vector<const TaskProcess*> list;
    for (const auto& [id, task] : tasks_) {
      if (task.outcome() && task.outcome()->code != Code::kOk) list.push_back(&task);
    }
    std::sort(list.begin(), list.end(), [](const TaskProcess* a, const TaskProcess* b) {
      return a->end_position() < b->end_position();
    });
    return list;
  }

 private:
  void make_log_directory() {
    std::error_code error;
    if (!options_.log_directory.empty()) {
      log_directory_ = options_.log_directory;
      std::filesystem::create_directories(log_directory_, error);
      if (!error) return;
      throw InvalidArgumentError(str("MultiProcessOptions.log_directory '", options_.log_directory,
                                     "' cannot be made: ", internal::errno_text(error.value())));
    }
    const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
    if (error) {
      const char* const folder = std::getenv("TMPDIR");
      throw NotFoundError(str("there is no folder for temporary files: TMPDIR is '",
                              folder ? folder : "", "' (", internal::errno_text(error.value()),
                              "). Set it to a folder that is there, or set "
                              "MultiProcessOptions.log_directory"));
    }
    std::string pattern = temporary / "cohort_tasks_XXXXXX";
    if (!::mkdtemp(pattern.data())) {
      throw ResourceExhaustedError(
          str("cannot make the temporary folder ", pattern, ": ", internal::errno_text(errno)));
    }
    log_directory_ = pattern;
    owns_log_directory_ = true;
  }

  void make_tasks() {
    std::vector<TaskId> ids;
    for (const JobSize& job : options_.jobs) {
      for (int i = 0; i < job.num_tasks; ++i) ids.push_back({job.name, i});
    }
    const int num_tasks = static_cast<int>(ids.size());
    if (options_.own_hosts) {
      network_ = std::make_unique<VirtualNetwork>(num_tasks);
    } else {
      ports_ = pick_free_ports(num_tasks);
    }
    std::map<TaskId, std::string> addresses;
    for (int i = 0; i < num_tasks; ++i) {
      const TaskId& id = ids[static_cast<size_t>(i)];
      hosts_[id] = i;
      addresses[id] =
          network_ ? str(network_->address(i), ':', kPortOfOwnHosts) : str("127.0.0.1:", ports_[i]);
    }
    std::vector<std::string> arguments = {std::string(internal::kTaskFlag), options_.function};
    arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
    for (const auto& [id, address] : addresses) {
      tasks_.emplace(id, internal::TaskSetup{
                             .id = id,
                             .address = address,
                             .log_path = log_directory_ / str(id.job, "_", id.index, ".log"),
                             .arguments = arguments,
                             .environment = environment_of(options_, tf_config(addresses, id)),
                             .network_fd = network_ ? network_->namespace_fd(hosts_[id]) : -1});
    }
  }

  std::vector<TaskProcess*> running() {
    std::vector<TaskProcess*> list;
    for (auto& [id, task] : tasks_) {
      if (task.is_running()) list.push_back(&task);
    }
    return list;
  }

  // Handles what has happened, waiting for it if nothing has; false: all tasks have ended, or the
  // deadline has passed.
  bool wait_for_events() {
    const auto tasks = running();
    if (tasks.empty()) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
    if (left.count() <= 0) return false;
    std::vector<pollfd> fds;
    for (const TaskProcess* task : tasks) {
      fds.push_back({task->pidfd(), POLLIN, 0});
      fds.push_back({task->report_fd(), POLLIN, 0});
    }
    ::poll(fds.data(), fds.size(), static_cast<int>(std::min<int64_t>(left.count(), 60'000)));
    for (TaskProcess* task : tasks) {
      task->read_report();
      collect(*task);
    }
    return true;
  }

  MultiProcessOptions options_;
  std::filesystem::path log_directory_;
  bool owns_log_directory_ = false;
  FreePorts ports_;
  std::unique_ptr<VirtualNetwork> network_;  // where the tasks have hosts of their own
  std::map<TaskId, int> hosts_;
  std::map<TaskId, TaskProcess> tasks_;
  std::optional<Clock::time_point> deadline_;
  int num_ended_ = 0;
};

MultiProcessRunner::MultiProcessRunner(MultiProcessOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

MultiProcessRunner::~MultiProcessRunner() = default;

std::vector<TaskId> MultiProcessRunner::tasks() const {
  std::vector<TaskId> ids;
  for (const auto& [id, task] : impl_->tasks()) ids.push_back(id);
  return ids;
}

std::string MultiProcessRunner::address(const TaskId& task) const {
  return impl_->find(task).setup().address;
}

void MultiProcessRunner::start() { impl_->start(); }

std::vector<TaskOutcome> MultiProcessRunner::wait_all() {
  impl_->check_started("wait_all");
  impl_->wait();
  std::vector<TaskOutcome> outcomes;
  for (const auto& [id, task] : impl_->tasks()) outcomes.push_back(*task.outcome());
  return outcomes;
}

std::map<TaskId, std::string> MultiProcessRunner::join() {
  impl_->check_started("join");
  impl_->wait();
  if (const auto failed = impl_->failed(); !failed.empty()) {
    internal::throw_error(failed[0]->outcome()->code, impl_->failures(), failed[0]->name());
  }
  std::map<TaskId, std::string> values;
  for (const auto& [id, task] : impl_->tasks()) values[id] = task.outcome()->value;
  return values;
}

void MultiProcessRunner::kill(const TaskId& task, int signal) {
  TaskProcess& process = impl_->find(task);
  impl_->collect(process);
  if (process.send_signal(signal)) return;
  throw FailedPreconditionError(
      str("cannot send signal ", signal, " to ", task, ", which does not run"));
}

void MultiProcessRunner::pause(const TaskId& task) { kill(task, SIGSTOP); }
void MultiProcessRunner::resume(const TaskId& task) { kill(task, SIGCONT); }

void MultiProcessRunner::partition(const std::vector<TaskId>& a, const std::vector<TaskId>& b,
                                   Partition kind) {
  impl_->network().partition(impl_->hosts(a), impl_->hosts(b), kind);
}
void MultiProcessRunner::cut_one_way(const TaskId& from, const TaskId& to) {
  impl_->network().cut_one_way(impl_->host(from), impl_->host(to));
}
void MultiProcessRunner::heal() { impl_->network().heal(); }
void MultiProcessRunner::limit_rate(const TaskId& task, int64_t bits_per_second) {
  impl_->network().limit_rate(impl_->host(task), bits_per_second);
}

void MultiProcessRunner::restart(const TaskId& task) {
  impl_->check_started("restart");
  TaskProcess& process = impl_->find(task);
  process.discard();
  process.start();
}

std::string MultiProcessRunner::wait_for_line(const TaskId& task, const std::string& regex,
                                              std::chrono::milliseconds timeout) {
  impl_->check_started("wait_for_line");
  TaskProcess& process = impl_->find(task);
  internal::LogWait wait = {.path = process.setup().log_path,
                            .offset = process.log_offset(),
                            .pidfd = process.pidfd(),
                            .deadline = std::min(Clock::now() + timeout, impl_->deadline())};
  try {
    wait.pattern = std::regex(regex);
  } catch (const std::regex_error& error) {
    throw InvalidArgumentError(str("'", regex, "' is no regular expression: ", error.what()));
  }
  const auto [end, line] = internal::wait_for_log_line(wait);
  if (end == internal::LogWaitEnd::kFound) return line;
  const std::string missing = str("a line that matches '", regex, "'\n", process.log_tail());
  if (end == internal::LogWaitEnd::kWriterEnded) {
    throw UnavailableError(str(task, " ended before it wrote ", missing), to_string(task));
  }
  throw DeadlineExceededError(str(task, " did not write within ", timeout.count(), " ms ", missing),
                              to_string(task));
}

std::string MultiProcessRunner::log(const TaskId& task) const {
  return internal::read_log(impl_->find(task).setup().log_path, 0,
                            std::numeric_limits<int64_t>::max() / 2);
}

}  // namespace cohort::testing
