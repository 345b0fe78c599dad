// gRPC's times on the monotonic clock, which is std::chrono::steady_clock's.
#pragma once

#include <grpc/support/time.h>

#include <chrono>
#include <cstdint>

namespace cohort::internal::rpc {

// time_point::max() for "never".
std::chrono::steady_clock::time_point to_steady(gpr_timespec time);
gpr_timespec deadline_after(std::chrono::nanoseconds timeout);
// A number of milliseconds, or of anything else, as a channel's argument. Larger numbers than it
// can hold become the largest, which stands for ever.
int to_argument(int64_t value);

}  // namespace cohort::internal::rpc
