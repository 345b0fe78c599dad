// The seeds of shuffles and samplings that were given none. Each process draws its own, so workers
// that divide one dataset would divide different orders of it: some elements would be read twice,
// others by nobody.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// What the nodes of the graph that were given no seed have drawn, inputs first.
std::vector<uint64_t> drawn_seeds(const DataNodePtr& root);

// The graph with these in their places; explain() calls them agreed. `seeds`: as many as
// drawn_seeds finds.
DataNodePtr with_agreed_seeds(const DataNodePtr& root, std::span<const uint64_t> seeds);

}  // namespace cohort::internal
