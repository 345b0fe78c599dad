// Decides how a collective call exchanges values: by the options of the call, else by those of its
// strategy.
#pragma once

#include "cohort/collective/call_timeout.h"
#include "cohort/collective/communication_options.h"

namespace cohort::internal {

class StrategyCore;

// Lives as long as the call, on its thread. Only the timeout counts in a call: a group keeps the
// implementation with which it was formed, and only gradients go in buckets.
class CommunicationScope {
 public:
  // Errors: InvalidArgument (a negative field).
  CommunicationScope(const StrategyCore& core,
                     const distribute::experimental::CommunicationOptions& of_call);

 private:
  const collective::ScopedCallTimeout timeout_;
};

}  // namespace cohort::internal
