#include "cohort/cluster/grpc/grpc_time.h"

#include <algorithm>
#include <limits>

#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal::rpc {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

steady_clock::time_point to_steady(gpr_timespec time) {
  if (gpr_time_cmp(time, gpr_inf_future(time.clock_type)) == 0) {
    return steady_clock::time_point::max();
  }
  const gpr_timespec left = gpr_time_sub(time, gpr_now(time.clock_type));
  // A caller says how long it waits, and may say 99999999 hours: more nanoseconds than there are.
  return steady_clock::now() + bounded_wait(seconds(left.tv_sec)) + nanoseconds(left.tv_nsec);
}

gpr_timespec deadline_after(nanoseconds timeout) {
  const nanoseconds wait = std::max(bounded_wait(timeout), nanoseconds(0));
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(wait.count(), GPR_TIMESPAN));
}

int to_argument(int64_t value) {
  return static_cast<int>(std::min<int64_t>(value, std::numeric_limits<int>::max()));
}

}  // namespace cohort::internal::rpc
