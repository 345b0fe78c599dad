#include "cohort/testing/multi_process_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/program/run_program.h"
#include "cohort/testing/task_report.h"

namespace cohort::testing {
namespace {

using internal::TaskReport;

std::string call(const TaskFunctions& functions, const std::string& name,
                 const std::vector<std::string>& arguments) {
  const auto found = functions.find(name);
  if (found != functions.end()) return found->second(arguments);
  std::string names;
  for (const auto& [known, function] : functions) names += " '" + known + "'";
  throw NotFoundError("multi_process_main was given no task function '" + name +
                      "'; it knows:" + (names.empty() ? " none" : names));
}

// Runs the function as run_program runs a program: it says on stderr what ended the function, and
// tells the tasks that work in step.
TaskReport run(const TaskFunctions& functions, const std::string& name,
               const std::vector<std::string>& arguments) {
  TaskReport report;
  const auto program = [&] {
    try {
      report = {Code::kOk, call(functions, name, arguments)};
    } catch (...) {
      const internal::ErrorRecord record = internal::record_error(std::current_exception());
      report = {record.code, record.message};
      throw;
    }
    return 0;
  };
  internal::run_program(program, ExitCodes());
  return report;
}

void send(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::write(internal::kReportFd, bytes.data() + sent, bytes.size() - sent);
    if (count < 0 && errno != EINTR) return;  // the runner is gone, or its deadline has passed
    if (count > 0) sent += static_cast<size_t>(count);
  }
}

}  // namespace

int multi_process_main(int argc, char** argv, const TaskFunctions& functions,
                       const std::function<int(int, char**)>& program) {
  if (argc < 3 || argv[1] != internal::kTaskFlag) return program(argc, argv);
  // What the task itself starts must not hold the pipe open.
  ::fcntl(internal::kReportFd, F_SETFD, FD_CLOEXEC);
  // Into a file stdout would be written in blocks, and wait_for_line would wait for them.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const TaskReport report = run(functions, argv[2], {argv + 3, argv + argc});
  send(encode(report));
  return report.code == Code::kOk ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace cohort::testing
