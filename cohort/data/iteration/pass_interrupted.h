// Errors that interrupt a pass, in contrast to errors of its elements.
#pragma once

#include <exception>

#include "cohort/data/iteration/input_deadline.h"

namespace cohort::internal {

// Carries `error` from the stage where a pass cannot continue (a device does not answer, a cache
// cannot be written) through all stages to the root of the pipeline, which throws `error` itself.
// It is not a std::exception, so the stages' handling of element errors (counting them, leaving
// them out, reading the others one by one) does not see it. Afterwards only rewind and restore may
// be called on an iterator.
struct PassInterrupted {
  std::exception_ptr error;
};

// Runs `run`, whose errors concern the whole pass.
template <class Run>
decltype(auto) of_pass(const Run& run) {
  try {
    return run();
  } catch (const std::exception&) {
    throw PassInterrupted{std::current_exception()};
  }
}

// Runs `run`, which reads a pipeline from its root, and throws the error that interrupted it.
template <class Run>
decltype(auto) at_root(const Run& run) {
  try {
    return run();
  } catch (const PassInterrupted& interrupted) {
    std::rethrow_exception(interrupted.error);
  }
}

// A file did not answer in time: `error` says which.
[[noreturn]] inline void interrupt_pass(const DeadlineExceededError& error) {
  throw PassInterrupted{std::make_exception_ptr(InputDeadlineExceeded(error.what(), error.task()))};
}

}  // namespace cohort::internal
