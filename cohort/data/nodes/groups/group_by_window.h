// Windows of elements with one key, of which a function makes datasets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {

struct WindowGrouping {
  std::string name = {};
  DataNode::Attributes attributes = {};
  std::function<int64_t(const Structure& element)> key = {};
  std::function<int64_t(int64_t key)> window_size = {};
  std::function<data::Dataset(int64_t key, const data::Dataset& window)> reduce = {};
  // The spec of elements over this input. Default: found by reducing a window of one element.
  std::function<StructureSpec(const data::Dataset& input)> spec = {};
};

// `seed`: of shuffles and random maps without one that `reduce` makes.
DataNodePtr make_group_by_window(DataNodePtr input, std::shared_ptr<const WindowGrouping> grouping,
                                 uint64_t seed);

}  // namespace cohort::internal
