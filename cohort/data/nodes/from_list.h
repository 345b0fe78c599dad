// Elements that are in memory, each a structure of its own.
#pragma once

#include <string>
#include <vector>

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// `like`: the node whose spec fits the elements; null: theirs does.
DataNodePtr make_list(std::string name, std::vector<Structure> elements,
                      DataNodePtr like = nullptr);

}  // namespace cohort::internal
