// What interrupts a pass, as against errors of its elements.
#pragma once

#include <exception>

#include "cohort/data/iteration/input_deadline.h"

namespace cohort::internal {

// Goes from where a pass cannot go on (a device does not answer, a cache cannot be written) through
// all stages to the root of the pipeline, which throws `error` in its place. It is no
// std::exception, so that whatever stages do about the error of an element (count it, leave it out,
// read the others one by one) passes it by. Afterwards an iterator is good for nothing but rewind
// and restore.
struct PassInterrupted {
  std::exception_ptr error;
};

// Runs `run`, whose errors are of the pass.
template <class Run>
decltype(auto) of_pass(const Run& run) {
  try {
    return run();
  } catch (const std::exception&) {
    throw PassInterrupted{std::current_exception()};
  }
}

// Runs `run`, which reads a pipeline from its root, and throws what interrupted it.
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
