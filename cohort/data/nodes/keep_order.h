// The same elements, in their order also where parallel stages need not keep it.
#pragma once

#include "cohort/data/graph/node.h"

namespace cohort::internal {

// For who counts on the positions of elements.
DataNodePtr make_keep_order(DataNodePtr input);

}  // namespace cohort::internal
