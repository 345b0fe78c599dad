// What is thrown where a device did not answer in time, and how iterators count around it.
#pragma once

#include <cstdint>

#include "cohort/core/error.h"

namespace cohort::internal {

// A file did not answer within its read_timeout. Unlike any other error it consumes nothing: the
// element is still to come, and the next call waits for it again. Only what itself waits for a
// device throws it: a user function's DeadlineExceededError is an error of its element.
class InputDeadlineExceeded final : public DeadlineExceededError {
 public:
  using DeadlineExceededError::DeadlineExceededError;
};

// Runs `read`, which asks for `n` elements and returns how many came, and counts them in `index`:
// all `n` where they fail, none where a device did not answer.
template <class Read>
int64_t read_counted(int64_t& index, int64_t n, const Read& read) {
  int64_t count = n;
  try {
    count = read();
  } catch (const InputDeadlineExceeded&) {
    throw;
  } catch (...) {
    index += n;
    throw;
  }
  index += count;
  return count;
}

}  // namespace cohort::internal
