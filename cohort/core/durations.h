// Checks of durations that users give.
#pragma once

#include <chrono>
#include <string_view>

namespace cohort::internal {

// Throws if the duration is negative. NaN, infinity and too many seconds are negative, too, after a
// cast. `option` names the duration: "RunOptions: timeout".
// Errors: InvalidArgument.
void check_not_negative(std::string_view option, std::chrono::milliseconds duration);

}  // namespace cohort::internal
