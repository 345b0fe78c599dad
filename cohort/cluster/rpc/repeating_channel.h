// Repeats calls that came too early: the peer has not yet heard of the group in which the caller
// is, and has asked for the news.
#pragma once

#include <functional>
#include <memory>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/clock.h"

namespace cohort::internal::rpc {

// Wraps `channel`. A call that is refused with Unavailable and Cause::kBehind, before the task does
// anything, starts again, after 10 ms at first and 200 ms
// at most, until its timeout; then the refusal is its error. `clock` is called only where it is
// needed, and not after close().
std::shared_ptr<Channel> repeat_early_calls(std::shared_ptr<Channel> channel,
                                            std::function<Clock&()> clock);

}  // namespace cohort::internal::rpc
