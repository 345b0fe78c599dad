// For a program's main: an error ends it with one line on stderr and an exit code that launchers
// understand, instead of std::terminate.
//
//   int main(int argc, char** argv) {
//     return cohort::run_program([&] { train(argc, argv); });
//   }
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"

namespace cohort {

// Codes below 128 say that another try would end the same way; `cohort launch --restarts` and
// Kubeflow's ExitCode policy start a task again that exits with 128 or more.
struct ExitCodes {
  int failed = 1;  // any other error
  // The command line, a configuration, a missing file, a cluster that cannot run, no permission:
  // InvalidArgument, FailedPrecondition, NotFound, AlreadyExists, Unimplemented, PermissionDenied,
  // Unauthenticated.
  int usage = 64;
  int bad_data = 65;  // DataLoss, OutOfRange
  // Unavailable, Aborted, DeadlineExceeded: a task was lost, or did not come.
  int lost_peer = 138;
  int interrupted = 130;  // Ctrl-C ended a training after a step
};

namespace internal {
COHORT_API int run_program(const std::function<int()>& program, const ExitCodes& codes);
}  // namespace internal

// Calls `program`, which returns the exit code or nothing (0), and returns that code. If it throws,
// writes a line "name: CLASS: what was wrong" to stderr and returns the code above. The tasks that
// work in step with this one (MultiWorkerMirroredStrategy) get the same error.
template <class Program>
int run_program(Program&& program, const ExitCodes& codes = {}) {
  static_assert(std::is_invocable_v<Program&>,
                "run_program takes a function without parameters: capture argc and argv");
  if constexpr (std::is_void_v<std::invoke_result_t<Program&>>) {
    return internal::run_program(
        [&] {
          program();
          return 0;
        },
        codes);
  } else {
    return internal::run_program([&]() -> int { return program(); }, codes);
  }
}

}  // namespace cohort
