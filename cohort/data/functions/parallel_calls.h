// The option num_parallel_calls, which several transformations have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cohort::internal {

// Errors: InvalidArgument (below 1, and not data::AUTOTUNE), naming the transformation.
void check_parallel_calls(const char* transformation, const std::optional<int64_t>& calls);
// "AUTOTUNE", or the number; also for buffer sizes.
std::string autotune_text(int64_t number);

}  // namespace cohort::internal
