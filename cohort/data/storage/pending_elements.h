// What was read of a step when a device stopped answering, as part of a state.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/data/iteration/state.h"

namespace cohort::internal {

// Nothing is written where there are none.
void save_pending(const std::vector<Structure>& elements, IteratorState& state);
// Errors: DataLoss (damaged, or not fewer than `most`; the text names `what`).
std::vector<Structure> restore_pending(const IteratorState& state, std::string_view what,
                                       int64_t most);

// The error of one that failed. What is no cohort::Error comes back as Unknown.
void save_error(const std::exception_ptr& error, IteratorState& state);
std::exception_ptr restore_error(const IteratorState& state);

}  // namespace cohort::internal
