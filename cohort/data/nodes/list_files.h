// The names of the files that match patterns (Dataset::list_files), where they are divided.
#pragma once

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// Logs a warning, once a list, if the graph shuffles what list_files found without a seed. To be
// called before elements of the graph are divided between workers.
void warn_of_unseeded_file_lists(const DataNodePtr& root);

}  // namespace cohort::internal
