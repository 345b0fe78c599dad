// What a batch has of its elements when a device stops answering: kept for the next call, and part
// of states that are taken in between.
#pragma once

#include <string_view>
#include <vector>

#include "cohort/core/structure.h"
#include "cohort/data/state.h"

namespace cohort::internal {

// Elements, or blocks of them. Nothing is written where there are none.
void save_pending(const std::vector<Structure>& elements, IteratorState& state);
// Errors: DataLoss (the text begins with `what`).
std::vector<Structure> restore_pending(const IteratorState& state, std::string_view what);

}  // namespace cohort::internal
