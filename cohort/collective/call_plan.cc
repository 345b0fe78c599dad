#include "cohort/collective/call_plan.h"

#include <utility>

#include "cohort/collective/call_fingerprint.h"

namespace cohort::collective {

uint64_t CallPlan::fingerprint() const {
  CallFingerprint all;
  for (const uint64_t one : fingerprints_) all.add(one);
  return all.value();
}

void CallPlan::learn(uint64_t fingerprint, std::string text, uint64_t sequence) {
  if (next_ == 0) {
    first_sequence_ = sequence;
    in_a_row_ = true;
  }
  if (sequence != first_sequence_ + next_) in_a_row_ = false;
  fingerprints_[next_] = fingerprint;
  texts_[next_] = std::move(text);
  advance();
  if (next_ == 0) agreed_ = in_a_row_;
}

void CallPlan::forget() {
  next_ = 0;
  agreed_ = false;
}

}  // namespace cohort::collective
