#include "cohort/cluster/grpc/grpc_time.h"

#include <algorithm>

namespace cohort::internal::rpc {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

// Longer waits are as good as "never", which no call may have.
constexpr seconds kLongest = std::chrono::hours(24 * 365);

}  // namespace

steady_clock::time_point to_steady(gpr_timespec time) {
  if (gpr_time_cmp(time, gpr_inf_future(time.clock_type)) == 0) {
    return steady_clock::time_point::max();
  }
  const gpr_timespec left = gpr_time_sub(time, gpr_now(time.clock_type));
  // A caller says how long it waits, and may say 99999999 hours: more nanoseconds than there are.
  const seconds whole = std::clamp(seconds(left.tv_sec), -kLongest, kLongest);
  return steady_clock::now() + whole + nanoseconds(left.tv_nsec);
}

gpr_timespec deadline_after(nanoseconds timeout) {
  const auto wait = std::clamp<nanoseconds>(timeout, nanoseconds(0), kLongest);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(wait.count(), GPR_TIMESPAN));
}

}  // namespace cohort::internal::rpc
