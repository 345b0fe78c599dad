// One graph of the graphs of several processes.
#pragma once

#include <map>
#include <string>

#include "cohort/train/objects/object_graph.h"

namespace cohort::internal {

// Adds to `into` what only `from` has. Objects are the same where the same names lead to them from
// the root. Returns, by the checkpoint key that a value has in `from`, the key it has in `into`.
std::map<std::string, std::string> merge_object_graph(ObjectGraph& into, const ObjectGraph& from);

}  // namespace cohort::internal
