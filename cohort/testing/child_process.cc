#include "cohort/testing/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cohort/core/error.h"
#include "cohort/testing/task_report.h"

namespace cohort::internal {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const auto& string : strings) list.push_back(const_cast<char*>(string.c_str()));
  list.push_back(nullptr);
  return list;
}

// posix_spawn's two objects; its functions fail for lack of memory alone.
class SpawnSetup {
 public:
  explicit SpawnSetup(const SpawnOptions& options) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&actions_, 1, options.log_path.c_str(),
                                       O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&actions_, 1, 2);
    ::posix_spawn_file_actions_adddup2(&actions_, options.report_fd, kReportFd);
    ::posix_spawnattr_init(&attributes_);
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

[[noreturn]] void throw_spawn_error(int error, const std::string& log_path) {
  const std::string message =
      str("cannot start a process with the log ", log_path, ": ", std::strerror(error));
  if (error == E2BIG) throw InvalidArgumentError(message);
  if (error == ENOENT || error == ENOTDIR) throw NotFoundError(message);
  if (error == EACCES || error == EPERM) throw PermissionDeniedError(message);
  throw ResourceExhaustedError(message);
}

}  // namespace

ChildProcess::ChildProcess(const SpawnOptions& options) {
  std::vector<std::string> arguments = {std::filesystem::read_symlink(kThisProgram).string()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  const SpawnSetup setup(options);
  if (int error = ::posix_spawn(&pid_, kThisProgram, setup.actions(), setup.attributes(),
                                pointers(arguments).data(), pointers(options.environment).data())) {
    throw_spawn_error(error, options.log_path);
  }
  // glibc 2.36's own header for it is none that C++ can link with.
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_.valid()) {
    const int error = errno;
    kill_and_reap();
    throw_spawn_error(error, options.log_path);
  }
}

ChildProcess::~ChildProcess() { kill_and_reap(); }

bool ChildProcess::send_signal(int signal) { return !status_ && ::kill(pid_, signal) == 0; }

ExitStatus ChildProcess::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFSIGNALED(status) ? ExitStatus{.signal = WTERMSIG(status)}
                                : ExitStatus{.exit_code = WEXITSTATUS(status)};
  return *status_;
}

std::optional<ExitStatus> ChildProcess::poll() {
  if (status_) return status_;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  return reap();
}

ExitStatus ChildProcess::kill_and_reap() {
  if (status_) return *status_;
  ::kill(pid_, SIGKILL);
  return reap();
}

}  // namespace cohort::internal
