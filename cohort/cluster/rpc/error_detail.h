// What an error tells programs beside its text, and how errors travel between tasks: class, text,
// task and detail arrive as they were thrown.
//
//   } catch (const cohort::UnavailableError& error) {
//     if (const cohort::ErrorDetail* detail = cohort::error_detail(error)) restart(detail->peer);
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/export.h"
#include "cohort/core/program/task_id.h"

namespace cohort {

// What happened, for programs that must tell one error of a code from another.
enum class Cause {
  kOther,              // what the text says
  kNoAnswer,           // `peer` was out of reach, broke the connection, or was late
  kClosed,             // the caller has closed its channel to `peer`, or ends
  kBehind,             // the called task has not heard of the caller's group yet: call again
  kNotMember,          // the caller is no member of the called task's group, or not any more
  kNotStarted,         // a task has not come within start_timeout
  kFenced,             // another coordinator is obeyed, of `generation`
  kSuperseded,         // the coordinator's program has used a strategy that it had made later
  kStartedAgain,       // the called task was started again and has lost what it had
  kInputLost,          // the called worker has not got what the call needs: it was started again
  kInputFailed,        // a closure's input could not be made: a ClosureInputError
  kFunctionCancelled,  // a Cancelled that a closure's function threw itself
  kPsLost,             // a ps task is lost, with its variables: a PSUnavailableError
  kProgramFailed,      // the program of `peer` has failed
};

// Fields that do not apply are empty, 0 or -1.
struct ErrorDetail {
  std::string peer = "";     // the task that it is about: "/job:worker/task:1"
  uint64_t incarnation = 0;  // that task's
  int64_t generation = 0;    // of the cluster, when it happened
  std::string phase = "";    // when: "start", "heartbeat", "barrier", "step", ...
  int64_t step = -1;
  std::string rpc = "";  // the method that failed: "membership/register"
  int system_error = 0;  // errno
  Cause cause = Cause::kOther;

  bool operator==(const ErrorDetail&) const = default;
};

// The detail that `error` carries, which lives as long as it does; nullptr where there is none.
COHORT_API const ErrorDetail* error_detail(const std::exception& error);

namespace internal::rpc {

// make_error of core/error.h, with a detail.
std::exception_ptr make_error(Code code, const std::string& message, const std::string& task,
                              ErrorDetail detail);
// The detail of an exception; an empty one where there is none.
ErrorDetail detail_of(const std::exception_ptr& error);

// The error of a call that `peer` has not answered: DeadlineExceeded if it was late, Unavailable if
// it was out of reach.
std::exception_ptr no_answer(Code code, const std::string& message, const TaskId& peer,
                             std::string_view method = "");
// Whether `error` is of the code and says so of `peer`. What a peer answers may tell the same of a
// third task.
bool is_unanswered(const std::exception_ptr& error, Code code, const TaskId& peer);

// A text of at most 4 KiB and short names, so that an error fits where gRPC carries it: 8 KiB of
// metadata.
inline constexpr size_t kMostErrorTextBytes = 4096;
inline constexpr size_t kMostErrorNameBytes = 256;

// `error` as bytes (rpc.Error of membership.proto), at most 6 KiB: what is longer is cut, and the
// text says so.
std::string encode_error(const std::exception_ptr& error);
// Makes the error again from its bytes. Any bytes make an error: if they are not those of an error,
// or of a code that does not exist, an Unknown that says so. Fields that a later version adds are
// passed over. Texts are shown as printable() does.
std::exception_ptr decode_error(std::string_view bytes);

}  // namespace internal::rpc
}  // namespace cohort
