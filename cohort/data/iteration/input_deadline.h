// What a reader throws where a device did not answer in time.
#pragma once

#include "cohort/core/error.h"

namespace cohort::internal {

// A file did not answer within its read_timeout. Unlike any other error it consumes nothing: the
// following call waits for the same element again. Only what reads a pipeline from its root throws
// it; within a pipeline it is a PassInterrupted.
class InputDeadlineExceeded final : public DeadlineExceededError {
 public:
  using DeadlineExceededError::DeadlineExceededError;
};

}  // namespace cohort::internal
