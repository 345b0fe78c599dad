// gRPC's times on the monotonic clock, which is std::chrono::steady_clock's.
#pragma once

#include <grpc/support/time.h>

#include <chrono>

namespace cohort::internal::rpc {

// time_point::max() for "never".
std::chrono::steady_clock::time_point to_steady(gpr_timespec time);
gpr_timespec deadline_after(std::chrono::nanoseconds timeout);

}  // namespace cohort::internal::rpc
