// Typed errors. Every failure that Cohort reports is one of these classes, one per canonical code;
// the class says what the caller should do next, the text says what was wrong, where, and what to
// do about it.
//
//   try {
//     strategy.run(train_step, batch);
//   } catch (const cohort::InvalidArgumentError& error) {   // do not retry: mend the call
//     std::cerr << error.what() << '\n';
//   } catch (const cohort::UnavailableError& error) {       // a task was lost: retry after recovery
//     ...
//   }
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/text_stream.h"

namespace cohort {

// The canonical codes, with the values that gRPC gives them.
enum class Code {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "INVALID_ARGUMENT" and so on; "UNKNOWN" for what is no code.
COHORT_API std::string_view code_name(Code code);

// Thread safety: immutable.
class COHORT_API Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message, std::string task = "")
      : std::runtime_error(message), code_(code), task_(std::move(task)) {}

  Code code() const { return code_; }
  // The task that raised it ("/job:worker/task:1"), empty where that is this process.
  const std::string& task() const { return task_; }

 private:
  Code code_;
  std::string task_;
};

namespace internal {
template <Code kCode>
class COHORT_API ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& message, std::string task = "")
      : Error(kCode, message, std::move(task)) {}
};
}  // namespace internal

// Python's ValueError and TypeError.
using InvalidArgumentError = internal::ErrorOf<Code::kInvalidArgument>;
// The end of the data, and Python's IndexError.
using OutOfRangeError = internal::ErrorOf<Code::kOutOfRange>;
// A missing file, name or reader; Python's KeyError.
using NotFoundError = internal::ErrorOf<Code::kNotFound>;
// The wrong context, order or state; Python's RuntimeError.
using FailedPreconditionError = internal::ErrorOf<Code::kFailedPrecondition>;
// Python's NotImplementedError.
using UnimplementedError = internal::ErrorOf<Code::kUnimplemented>;
// A task was lost.
using UnavailableError = internal::ErrorOf<Code::kUnavailable>;
// The operation was abandoned because of another failure; retry at a higher level.
using AbortedError = internal::ErrorOf<Code::kAborted>;
using CancelledError = internal::ErrorOf<Code::kCancelled>;
using DeadlineExceededError = internal::ErrorOf<Code::kDeadlineExceeded>;
// A corrupt file.
using DataLossError = internal::ErrorOf<Code::kDataLoss>;
using ResourceExhaustedError = internal::ErrorOf<Code::kResourceExhausted>;
using PermissionDeniedError = internal::ErrorOf<Code::kPermissionDenied>;
using UnauthenticatedError = internal::ErrorOf<Code::kUnauthenticated>;
using AlreadyExistsError = internal::ErrorOf<Code::kAlreadyExists>;
using UnknownError = internal::ErrorOf<Code::kUnknown>;
using InternalError = internal::ErrorOf<Code::kInternal>;

namespace internal {
// Throws an error of the class with this code.
// Errors: that one; Internal for kOk, which is not an error; Unknown for a number that is not a
// code.
[[noreturn]] COHORT_API void throw_error(Code code, const std::string& message,
                                         const std::string& task = "");
// The same, to be thrown later.
COHORT_API std::exception_ptr make_error(Code code, const std::string& message,
                                         const std::string& task = "");

// Whether the error is of the very class of its code, not of one derived from it.
bool is_of_its_code(const Error& error);

// The contents of an exception, in the form in which it is written to files and sent to other
// processes; make_error turns it into an exception again.
struct ErrorRecord {
  Code code = Code::kUnknown;  // of what is no Error, too
  std::string message;
  std::string task = "";
};
// A null pointer, too: that of a thread which pthread_exit unwinds.
COHORT_API ErrorRecord record_error(const std::exception_ptr& error);

// Joins the printed forms of its arguments: str("layer '", name, "' takes rank ", 4). The same text
// under every locale.
template <class... Parts>
std::string str(const Parts&... parts) {
  TextStream out;
  (out << ... << parts);
  return std::move(out).str();
}
}  // namespace internal

}  // namespace cohort
