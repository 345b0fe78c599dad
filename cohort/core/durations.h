// Checks of durations that users give.
#pragma once

#include <chrono>
#include <string_view>

namespace cohort::internal {

// option: "RunOptions: timeout". What a cast makes of NaN, of infinity or of too many seconds is negative,
// too. Errors: InvalidArgument.
void check_not_negative(std::string_view option, std::chrono::milliseconds duration);

}  // namespace cohort::internal
