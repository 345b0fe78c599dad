#include "cohort/collective/call_plan.h"

#include <utility>

namespace cohort::collective {

uint64_t CallPlan::fingerprint() const {
  CallFingerprint all;
  for (const uint64_t one : fingerprints_) all.add(one);
  return all.value();
}

void CallPlan::learn(uint64_t fingerprint, std::string text, const CallPlace& place) {
  if (next_ == 0) {
    first_ = place;
    in_a_row_ = true;
  }
  if (place.sequence != first_.sequence + next_ || place.phase != first_.phase) in_a_row_ = false;
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
