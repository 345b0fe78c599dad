// Ctrl-C during a call that makes steps (core/interrupt.h), over all tasks.
//
//   InterruptRequests interrupts(core);
//   while (step()) {
//     if (interrupts.any()) throw InterruptedError("interrupted: ...");
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cohort/core/program/interrupt.h"
#include "cohort/distribute/core/strategy_core.h"

namespace cohort::internal {

// Thread safety: one thread.
class InterruptRequests {
 public:
  explicit InterruptRequests(std::shared_ptr<StrategyCore> core) : core_(std::move(core)) {}

  // Whether a person has asked any task to end. COLLECTIVE over tasks at each sixteenth call, at
  // which they agree, since that takes time; before it says no.
  bool any();
  // The same now. COLLECTIVE over tasks.
  bool any_now();

 private:
  const std::shared_ptr<StrategyCore> core_;
  const InterruptScope scope_;
  int64_t calls_ = 0;
};

}  // namespace cohort::internal
