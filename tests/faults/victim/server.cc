#include "server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <map>
#include <sstream>

#include "cohort/core/error.h"

namespace cohort::faults {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

[[noreturn]] void run_child(const Command& command, const std::vector<std::string>& words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // strace is no parent of it
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = ::open(words[1].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  const int status = command({words.begin() + 2, words.end()}, [] { ::raise(SIGSTOP); });
  std::cout.flush();
  ::_exit(status);
}

class Server {
 public:
  explicit Server(const Command& command) : command_(command) {}

  std::string answer(const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() >= 3 && words[0] == "start") return std::to_string(start(words));
    if (words.size() == 2 && words[0] == "wait") return wait_for(std::stoi(words[1]));
    throw InvalidArgumentError("the server does not know '" + line + "'");
  }

 private:
  pid_t start(const std::vector<std::string>& words) {
    const pid_t pid = ::fork();
    if (pid == -1) throw ResourceExhaustedError("fork failed");
    if (pid == 0) run_child(command_, words);
    int status = 0;
    ::waitpid(pid, &status, WUNTRACED);
    if (!WIFSTOPPED(status)) ended_[pid] = status;
    return pid;
  }

  std::string wait_for(pid_t pid) {
    int status = 0;
    if (const auto known = ended_.extract(pid)) {
      status = known.mapped();
    } else if (::waitpid(pid, &status, WUNTRACED) != pid) {
      throw InvalidArgumentError(internal::str("there is no process ", pid));
    }
    if (WIFSTOPPED(status)) return "stopped 0";
    return WIFEXITED(status) ? internal::str("exit ", WEXITSTATUS(status))
                             : internal::str("signal ", WTERMSIG(status));
  }

  const Command& command_;
  std::map<pid_t, int> ended_;  // before they were ready, and not waited for yet
};

}  // namespace

void serve(const Command& command) {
  Server server(command);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << server.answer(line) << std::endl;
  }
}

}  // namespace cohort::faults
