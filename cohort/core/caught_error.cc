#include "cohort/core/caught_error.h"

#include "cohort/core/error.h"

namespace cohort::internal {

std::exception_ptr thread_ended_error(std::string_view where) {
  return std::make_exception_ptr(FailedPreconditionError(
      str("a thread was ended in ", where,
          ", by pthread_exit or pthread_cancel; return from the function, or throw")));
}

void keep_error(std::exception_ptr& error, std::string_view where, FunctionRef<void()> body) {
  try {
    body();
  } catch (...) {
    error = std::current_exception();
    if (error) return;
    error = thread_ended_error(where);
    throw;
  }
}

}  // namespace cohort::internal
