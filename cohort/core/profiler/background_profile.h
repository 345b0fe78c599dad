// Measures where time goes for the library itself, and gives way to a program that profiles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/profiler/profile.h"

namespace cohort::internal {

// Begins a session and returns its number; nullopt while the profiler runs. A program's
// profiler::start() takes the session's place.
// Thread safety: as profiler::start.
std::optional<uint64_t> start_background_profile();
// Ends the session and returns the profile; nullopt if another session has taken its place.
std::optional<profiler::Profile> stop_background_profile(uint64_t session);

// "71% compute, 12% update, 8% input, 5% exchange, 2% wait, 2% other": of the time of the threads
// that compute. Empty where there were no steps.
std::string time_shares(const profiler::Profile& profile);

}  // namespace cohort::internal
