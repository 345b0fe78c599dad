// A device's or network's first error is often its only one.
#pragma once

#include <chrono>

#include "cohort/core/error.h"
#include "cohort/core/threads/backoff.h"

namespace cohort::internal {

// How long what failed is left alone.
inline constexpr std::chrono::milliseconds kBackOff{10};

// `call`, and once more where it ends in DataLoss.
template <class Call>
auto with_second_try(const Call& call) {
  try {
    return call();
  } catch (const DataLossError&) {
    Backoff(kBackOff).sleep(Backoff::Clock::time_point::max());
  }
  return call();
}

}  // namespace cohort::internal
