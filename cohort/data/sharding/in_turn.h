// Reads what several pipelines have left, batch by batch in turn: for readers that go on where
// others were, each with a part of a dataset of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/state.h"

namespace cohort::internal {

// The place of one of the pipelines.
struct PipelineRest {
  IteratorState::Child root;  // the state of its root
  int64_t skip = 0;           // batches since then
  // The pieces of the batch after those that are used up: `piece` of `pieces` that it is cut into.
  int64_t piece = 0;
  int64_t pieces = 1;
};

// One batch of each of the pipelines in turn; one that has ended is passed by.
DataNodePtr make_in_turn(std::vector<DataNodePtr> pipelines);
// The state of its root at which the pipelines are at these places.
IteratorState state_in_turn(const std::vector<PipelineRest>& rests);

}  // namespace cohort::internal
