// Keeps errors, to throw them later and elsewhere. pthread_exit and pthread_cancel unwind a thread
// with an exception of the C library's own. It must not be kept: the C library aborts a program
// that swallows it.
#pragma once

#include <exception>
#include <string_view>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// Returns the exception that is being handled, for the caller to keep. A thread that is being ended
// goes on ending instead.
inline std::exception_ptr caught_error() {
  if (std::exception_ptr error = std::current_exception()) return error;
  throw;
}

// The FailedPreconditionError that says that a thread was ended in `where`: "the function of map".
std::exception_ptr thread_ended_error(std::string_view where);

// Calls body() and keeps in `error` what it throws, for another thread to find. If body ends the
// thread, the thread goes on ending, and `error` says that it has ended in `where`.
void keep_error(std::exception_ptr& error, std::string_view where, FunctionRef<void()> body);

}  // namespace cohort::internal
