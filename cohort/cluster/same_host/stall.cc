#include "cohort/cluster/same_host/stall.h"

#include <algorithm>

namespace cohort::internal::rpc {
namespace {

constexpr std::chrono::seconds kMostPerTick{1};

}  // namespace

std::chrono::nanoseconds Stall::stands_still(bool expects_more, uint64_t moved, Time now) {
  const std::chrono::nanoseconds passed = now - last_tick_.value_or(now);
  last_tick_ = now;
  if (!expects_more || moved != moved_) {
    still_ = {};
  } else {
    still_ += std::min<std::chrono::nanoseconds>(passed, kMostPerTick);
  }
  moved_ = moved;
  return still_;
}

}  // namespace cohort::internal::rpc
