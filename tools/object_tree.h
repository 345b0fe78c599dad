// The graph of a checkpoint's objects as a tree of text.
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "cohort/train/objects/object_graph.h"

namespace cohort::tools {

// What a line says of a value, by its key in the checkpoint: "float32 [2, 3]".
using DescribeValue = std::function<std::string(const std::string& checkpoint_key)>;

// An object's line stands below the parent from which the way to the root is shortest; wherever
// else it is a child, the line says where that is:
//
//   model
//     kernel: float32 [2, 3]
//   optimizer
//     variables
//       0 -> model/kernel
//
// A hostile graph costs output in proportion to its size: below kDeepestObject levels objects are
// only counted, and long places are cut.
inline constexpr uint32_t kDeepestObject = 100;
void print_object_tree(const internal::ObjectGraph& graph, const DescribeValue& describe,
                       std::ostream& out);

}  // namespace cohort::tools
