// Errors that are kept to be thrown later, elsewhere. pthread_exit and pthread_cancel unwind a thread
// with an exception of the C library's own, which may not be kept: who swallows it is aborted.
#pragma once

#include <exception>
#include <string_view>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// The exception that is being handled, which the caller keeps. A thread that is being ended goes on
// ending instead.
inline std::exception_ptr caught_error() {
  if (std::exception_ptr error = std::current_exception()) return error;
  throw;
}

// A FailedPreconditionError that says so of a thread in `where`: "the function of map".
std::exception_ptr thread_ended_error(std::string_view where);

// Calls body() and keeps in `error` what it throws, for another thread to find. A thread that body
// ends goes on ending; `error` then says that it has ended in `where`.
void keep_error(std::exception_ptr& error, std::string_view where, FunctionRef<void()> body);

}  // namespace cohort::internal
