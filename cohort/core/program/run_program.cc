#include "cohort/core/program/run_program.h"

#include <cerrno>
#include <cstdio>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/forced_unwind.h"
#include "cohort/core/program/failure_frame.h"
#include "cohort/core/program/interrupt.h"

namespace cohort::internal {
namespace {

int exit_code(Code code, const ExitCodes& codes) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kUnimplemented:
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      return codes.usage;
    case Code::kOutOfRange:
    case Code::kDataLoss:
      return codes.bad_data;
    case Code::kUnavailable:
    case Code::kAborted:
    case Code::kDeadlineExceeded:
      return codes.lost_peer;
    default:
      return codes.failed;
  }
}

}  // namespace

COHORT_CATCHES_FORCED_UNWIND
int run_program(const std::function<int()>& program, const ExitCodes& codes) {
  FailureFrame frame;
  try {
    return program();
  } catch (const abi::__forced_unwind&) {
    throw;  // pthread_exit: the C library's, which may not be swallowed
  } catch (const InterruptedError& error) {
    std::fflush(stdout);
    const std::string line = str(::program_invocation_short_name, ": ", error.what(), "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
    frame.caught(std::current_exception());
    return codes.interrupted;
  } catch (...) {
    const ErrorRecord error = record_error(std::current_exception());
    std::fflush(stdout);
    const std::string line =
        str(::program_invocation_short_name, ": ", code_name(error.code), ": ", error.message,
            error.task.empty() ? "" : " [" + error.task + "]", "\n");
    std::fwrite(line.data(), 1, line.size(), stderr);
    frame.caught(std::current_exception());
    return exit_code(error.code, codes);
  }
}

}  // namespace cohort::internal
