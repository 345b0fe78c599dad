// The position in batches that several pipelines share, each of which gives some pieces of each
// batch. Between two steps all of them are at one place, which is that of a single reader of the
// undivided dataset: it fits any number of pipelines and pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cohort/data/iteration/state.h"

namespace cohort::distribute::internal_input {

// Pipeline i of n gives pieces i, i + n, ... of each batch; n divides the number of pieces.
// Immutable.
struct SharedOrder {
  int64_t pieces = 1;  // of a batch; 1: elements are whole batches
  int64_t pipelines = 1;
  // The undivided dataset, as its iterators' states describe it (describe_state_graph).
  std::shared_ptr<const std::string> graph;
};

// The text of a graph without the seeds that tasks have agreed on: states hold them, as they hold
// those that were drawn.
std::string without_agreed(std::string graph);

// The position of the undivided dataset, from the state of pipeline `number` between two steps.
// Errors: FailedPrecondition (within a step).
data::IteratorState whole_position(const SharedOrder& order, int64_t number,
                                   const data::IteratorState& own);
// The state of pipeline `number`, whose graph is `graph`, at that position.
// Errors: InvalidArgument (of another dataset: names the first node that differs; within a step).
data::IteratorState own_position(const SharedOrder& order, int64_t number,
                                 const std::shared_ptr<const std::string>& graph,
                                 const data::IteratorState& whole);

}  // namespace cohort::distribute::internal_input
