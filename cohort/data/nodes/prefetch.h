// Reading ahead: as Dataset::prefetch, and further where elements are small.
#pragma once

#include <cstdint>

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// Keeps `buffer_size` elements ready (at least 1), and up to four times as many while they take
// less than 1 MiB together. The thread that reads is then woken once for several elements: a wake
// costs the reader more than reading most elements does.
DataNodePtr make_read_ahead(const DataNodePtr& input, int64_t buffer_size);

}  // namespace cohort::internal
