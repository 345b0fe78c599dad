#include "cohort/cluster/launch/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cohort/cluster/launch/process_group.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr int kExtraFd = 3;

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const auto& string : strings) list.push_back(const_cast<char*>(string.c_str()));
  list.push_back(nullptr);
  return list;
}

std::string own_path() {
  std::string path(4096, '\0');
  const ssize_t size = ::readlink(kThisProgram, path.data(), path.size());
  path.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return path;
}

// All that the child needs, made before the child is there: between vfork and exec it only makes
// system calls, because it shares this process's memory.
struct Image {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int fds[3];  // stdout, stderr, descriptor 3; above 3 all of them
  bool own_group;
  bool dies_with_parent;
  pid_t parent;
  const cpu_set_t* cores;  // may be null
  int network_fd;
  int error = 0;  // what the child reports
};

void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool prepare(const Image& image) {
  if (image.own_group && ::setpgid(0, 0) != 0) return false;
  if (image.dies_with_parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    if (::getppid() != image.parent) ::_exit(128 + SIGKILL);  // it has ended meanwhile
  }
  if (image.cores && ::sched_setaffinity(0, sizeof(cpu_set_t), image.cores) != 0) return false;
  if (image.network_fd >= 0 && ::setns(image.network_fd, CLONE_NEWNET) != 0) return false;
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || (null != 0 && (::dup2(null, 0) < 0 || ::close(null) != 0))) return false;
  for (int i = 0; i < 3; ++i) {
    if (image.fds[i] >= 0 && ::dup2(image.fds[i], i + 1) < 0) return false;
  }
  if (image.fds[2] < 0) ::close(kExtraFd);  // which this process may have been started with
  return true;
}

// In the child, with the parent stopped until exec or _exit.
[[noreturn]] void become(Image& image) {
  reset_signals();
  if (prepare(image)) ::execve(image.path, image.arguments, image.environment);
  image.error = errno;
  ::_exit(127);
}

// Lets this process learn how its children end. While SIGCHLD is ignored, the kernel reaps children
// before anybody can ask.
void keep_exit_codes() {
  struct sigaction action {};
  ::sigaction(SIGCHLD, nullptr, &action);
  const bool is_ignored = action.sa_handler == SIG_IGN;
  if (!is_ignored && (action.sa_flags & SA_NOCLDWAIT) == 0) return;
  if (is_ignored) action.sa_handler = SIG_DFL;
  action.sa_flags &= ~SA_NOCLDWAIT;
  ::sigaction(SIGCHLD, &action, nullptr);
}

// A descriptor above those that the child gets, so that no dup2 overwrites the source of the next.
UniqueFd out_of_the_way(int fd) {
  if (fd < 0) return UniqueFd();
  UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, kExtraFd + 1));
  if (!copy.valid()) {
    throw ResourceExhaustedError(str("cannot copy a descriptor: ", errno_text(errno)));
  }
  return copy;
}

[[noreturn]] void throw_spawn_error(int error, const std::string& program) {
  const std::string message = str("cannot start '", program, "': ", errno_text(error));
  if (error == E2BIG || error == EINVAL) throw InvalidArgumentError(message);
  if (error == ENOENT || error == ENOTDIR) throw NotFoundError(message);
  if (error == EACCES || error == EPERM || error == ENOEXEC) throw PermissionDeniedError(message);
  throw ResourceExhaustedError(message);
}

pid_t start(Image& image) {
  // A handler that ran in the child would run on this thread's stack.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) become(image);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) image.error = error;
  return pid;
}

cpu_set_t core_set(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) {
    if (core < 0 || core >= CPU_SETSIZE) {
      throw InvalidArgumentError(str("a process cannot be put on core ", core));
    }
    CPU_SET(static_cast<size_t>(core), &set);
  }
  return set;
}

bool is_executable(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);  // strsignal gives sentences
  return name ? str("SIG", name) : str("signal ", signal);
}

std::string describe(const ExitStatus& status) {
  if (status.signal) return str("was ended by ", signal_name(*status.signal));
  if (status.exit_code) return str("exited with ", *status.exit_code);
  return "ended, and its exit code was lost";
}

std::string find_program(const std::string& name) {
  if (name.empty()) throw InvalidArgumentError("the program's name is empty");
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), F_OK) != 0) {
      throw NotFoundError(str("there is no program '", name, "': ", errno_text(errno)));
    }
    if (!is_executable(name)) {
      throw PermissionDeniedError(str("'", name, "' is no file that can be executed"));
    }
    return name;
  }
  const char* path = ::getenv("PATH");
  const std::string directories = path ? path : "/usr/local/bin:/usr/bin:/bin";
  for (size_t begin = 0; begin <= directories.size();) {
    const size_t end = std::min(directories.find(':', begin), directories.size());
    const std::string directory = directories.substr(begin, end - begin);
    const std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    if (!name.empty() && is_executable(candidate)) return candidate;
    begin = end + 1;
  }
  throw NotFoundError(str("there is no program '", name, "' in PATH (", directories, "); write './",
                          name, "' for one in this folder"));
}

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) environment.emplace_back(*entry);
  return environment;
}

void set_variable(std::vector<std::string>& environment, std::string_view name,
                  std::string_view value) {
  const std::string begin = str(name, "=");
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(begin); });
  environment.push_back(str(begin, value));
}

ChildProcess::ChildProcess(const SpawnOptions& options) : own_group_(options.own_group) {
  const std::string name = options.program.empty() ? own_path() : options.program;
  std::vector<std::string> arguments = {name};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(options.environment);
  const cpu_set_t cores = core_set(options.cores);
  const UniqueFd fds[] = {out_of_the_way(options.stdout_fd), out_of_the_way(options.stderr_fd),
                          out_of_the_way(options.extra_fd)};
  Image image{.path = options.program.empty() ? kThisProgram : name.c_str(),
              .arguments = argv.data(),
              .environment = envp.data(),
              .fds = {fds[0].get(), fds[1].get(), fds[2].get()},
              .own_group = options.own_group,
              .dies_with_parent = options.dies_with_parent,
              .parent = ::getpid(),
              .cores = options.cores.empty() ? nullptr : &cores,
              .network_fd = options.network_fd};
  keep_exit_codes();
  const pid_t pid = start(image);
  if (pid < 0) throw_spawn_error(image.error, name);
  pid_ = pid;
  if (image.error != 0) {
    reap();
    throw_spawn_error(image.error, name);
  }
  // glibc 2.36's own header for this call cannot be used from C++.
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_.valid()) {
    const int error = errno;
    kill_and_reap();
    throw_spawn_error(error, name);
  }
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) kill_and_reap();
}

bool ChildProcess::send_signal(int signal) {
  if (status_) return false;
  return (own_group_ && ::kill(-pid_, signal) == 0) || ::kill(pid_, signal) == 0;
}

bool ChildProcess::leaves_others() const { return own_group_ && !status_ && group_lives(pid_); }

ExitStatus ChildProcess::reap() {
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  if (reaped < 0) {
    status_ = ExitStatus{};
    return *status_;
  }
  status_ = WIFSIGNALED(status) ? ExitStatus{.signal = WTERMSIG(status)}
                                : ExitStatus{.exit_code = WEXITSTATUS(status)};
  return *status_;
}

bool ChildProcess::has_ended() {
  if (status_) return true;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
    return info.si_pid != 0;
  }
  if (errno == ECHILD) status_ = ExitStatus{};  // somebody else has reaped it
  return status_.has_value();
}

std::optional<ExitStatus> ChildProcess::poll() {
  if (!has_ended() || status_) return status_;
  // Before it is reaped: until then its number is no other group's.
  if (own_group_) ::kill(-pid_, SIGKILL);
  return reap();
}

ExitStatus ChildProcess::kill_and_reap() {
  if (status_) return *status_;
  send_signal(SIGKILL);
  return reap();
}

}  // namespace cohort::internal
