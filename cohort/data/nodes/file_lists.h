// Lists of files that are divided between workers.
#pragma once

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// Logs a warning, once a list, where the graph shuffles what list_files found and has no seed to do
// it with: to be called before elements of it are divided.
void warn_of_unseeded_file_lists(const DataNodePtr& root);

}  // namespace cohort::internal
