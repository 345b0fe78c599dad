// How a collective call exchanges values: as the options say that it was given, else as its strategy's do.
#pragma once

#include "cohort/collective/call_timeout.h"
#include "cohort/collective/communication_options.h"

namespace cohort::internal {

class StrategyCore;

// Lives as long as the call, on its thread. A group keeps the implementation with which it was formed,
// and packs are of gradients: what counts in a call is the timeout.
class CommunicationScope {
 public:
  // Errors: InvalidArgument (a negative field).
  CommunicationScope(const StrategyCore& core,
                     const distribute::experimental::CommunicationOptions& of_call);

 private:
  const collective::ScopedCallTimeout timeout_;
};

}  // namespace cohort::internal
