// What a batch has of its elements when a device stops answering: kept for the next call, and part
// of states that are taken in between.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cohort/core/structure.h"
#include "cohort/data/state.h"

namespace cohort::internal {

// Elements, or blocks of them. Nothing is written where there are none.
void save_pending(const std::vector<Structure>& elements, IteratorState& state);
// Errors: DataLoss (damaged, or not fewer than `most`; the text names `what`).
std::vector<Structure> restore_pending(const IteratorState& state, std::string_view what,
                                       int64_t most);

}  // namespace cohort::internal
