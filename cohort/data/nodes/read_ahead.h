// Reading ahead of steps: as Dataset::prefetch, and further where elements are small.
#pragma once

#include <cstdint>

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// Keeps `buffer_size` elements ready, 1 or more, and up to four times as many where they take less than 1 MiB
// together: its thread is then woken once for several, which takes the reader longer than to read most elements.
DataNodePtr make_read_ahead(const DataNodePtr& input, int64_t buffer_size);

}  // namespace cohort::internal
