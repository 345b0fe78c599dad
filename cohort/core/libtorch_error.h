// libtorch's errors as Cohort's: the one place that decides their class and their text.
#pragma once

#include <c10/util/Exception.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {

// The error's message up to an empty line, after which libtorch lists all backends. If
// debugging::disable_traceback_filtering was called, the whole message and the backtrace.
// record_error uses this text, and the class that throw_libtorch_error chooses.
std::string libtorch_message(const c10::Error& error);

// Errors, always: ResourceExhausted (no memory), Unimplemented (not there for this dtype, layout or
// device), or InvalidArgument. `context` stands before libtorch's text, unless it is empty. An
// index out of range, too, is an InvalidArgument: loops take OutOfRange for the end of their data.
[[noreturn]] void throw_libtorch_error(const c10::Error& error, const std::string& context);
// Errors, always: InvalidArgument.
[[noreturn]] void throw_libtorch_error(const std::runtime_error& error, const std::string& context);

// Calls fn(). Errors of libtorch become typed errors that name `where`.
template <class Fn>
decltype(auto) with_typed_errors(const char* where, Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const c10::Error& error) {
    throw_libtorch_error(error, where);
  }
}

// Does the same as with_typed_errors, for an fn that calls nothing but libtorch. A
// std::runtime_error is then libtorch's own, which some of its checks of shapes throw, and not a
// user's error.
template <class Fn>
decltype(auto) libtorch_call(const char* operation, Fn&& fn) {
  try {
    return with_typed_errors(operation, std::forward<Fn>(fn));
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw_libtorch_error(error, operation);
  }
}

}  // namespace cohort::internal
