// For tests of what a child of fork may do.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <string>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// Forks, and returns what `body` returned in the child, or "threw ..." or "killed by signal ...":
// 14 (SIGALRM) is that of a child that was not back within 20 s. The child ends right after `body`.
inline std::string in_forked_child(FunctionRef<std::string()> body) {
  constexpr unsigned kSeconds = 20;
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSeconds);
    std::string result;
    try {
      result = body();
    } catch (const std::exception& error) {
      result = std::string("threw ") + error.what();
    }
    const bool written = ::write(ends[1], result.data(), result.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string result;
  char buffer[4096];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof(buffer))) > 0;) {
    result.append(buffer, static_cast<size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? result : "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace cohort::internal
