// Calls that all tasks make again and again in one order, such as those for the buckets of a step.
//
//   const auto plan = std::make_shared<CallPlan>(2);                // on every task
//   for (int step = 0; step < steps; ++step) {
//     all_reduce(communicator, first, {.name = "first", .plan = plan.get()});
//     all_reduce(communicator, second, {.name = "second", .plan = plan.get()});
//   }
//
// The tasks agree on each call at the first time. If all calls belonged to one step, and no other
// call came between them, then from the second time on the first call stands for all: it promises
// that this task makes the others next, in the same step, and no other calls. A task that breaks
// the promise refuses its own call and ends the group's work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/call_fingerprint.h"

namespace cohort::collective {

// Made by std::make_shared. Thread safety: that of the communicator it is used with, which must be
// one only.
class CallPlan : public std::enable_shared_from_this<CallPlan> {
 public:
  // calls: how many each time has; the same on every task.
  explicit CallPlan(size_t calls) : fingerprints_(calls), texts_(calls) {}

  size_t size() const { return fingerprints_.size(); }
  // The position of the next call.
  size_t next() const { return next_; }
  // Whether all calls are agreed on, so that the first stands for all.
  bool agreed() const { return agreed_; }

  uint64_t fingerprint(size_t call) const { return fingerprints_[call]; }
  // The fingerprint of all calls together. Only once they are agreed on.
  uint64_t fingerprint() const;
  // What the call is, for messages.
  const std::string& text(size_t call) const { return texts_[call]; }

  // Notes that the next call was made at this place, where it was agreed on.
  void learn(uint64_t fingerprint, std::string text, const CallPlace& place);
  // Notes that the next call was made as planned.
  void advance() { next_ = (next_ + 1) % size(); }
  // Forgets everything: the tasks did not agree.
  void forget();

 private:
  std::vector<uint64_t> fingerprints_;
  std::vector<std::string> texts_;
  size_t next_ = 0;
  CallPlace first_;       // of this time
  bool in_a_row_ = true;  // whether no other call came between those of this time, nor another step
  bool agreed_ = false;
};

}  // namespace cohort::collective
