// The error of a read that a device did not answer in time.
#pragma once

#include "cohort/core/error.h"

namespace cohort::internal {

// A file did not answer within its read_timeout. Unlike any other error it consumes nothing: the
// next call waits for the same element again. Only code that reads a pipeline from its root throws
// it; within a pipeline it is a PassInterrupted.
class InputDeadlineExceeded final : public DeadlineExceededError {
 public:
  using DeadlineExceededError::DeadlineExceededError;
};

}  // namespace cohort::internal
