#include "cohort/collective/call_timeout.h"

#include <utility>

namespace cohort::collective {
namespace {

thread_local std::chrono::nanoseconds timeout_of_calls{0};

}  // namespace

ScopedCallTimeout::ScopedCallTimeout(std::chrono::nanoseconds timeout)
    : previous_(std::exchange(timeout_of_calls, timeout)) {}
ScopedCallTimeout::~ScopedCallTimeout() { timeout_of_calls = previous_; }

std::chrono::nanoseconds ScopedCallTimeout::current() { return timeout_of_calls; }

}  // namespace cohort::collective
