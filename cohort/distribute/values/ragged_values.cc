#include "cohort/distribute/values/ragged_values.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "cohort/collective/replica_collectives.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// The same structure with fn(node) for each RaggedTensor.
Structure map_ragged(const Structure& value, FunctionRef<Structure(const Structure&)> fn) {
  if (!has_composites(value)) return value;
  return map_nodes(value, [&](const Structure& node) {
    return composite_kind(node) == Composite::kRagged ? fn(node) : node;
  });
}

Structure map_splits(const Structure& ragged, FunctionRef<Tensor(const Tensor&)> fn) {
  Structure::Dict items = ragged.items();
  for (size_t i = 1; i < items.size(); ++i) items[i].second = fn(items[i].second.tensor());
  return Structure::make_dict(std::move(items));
}

Tensor lengths_of(const Tensor& splits) { return splits.slice(0, 1) - splits.slice(0, 0, -1); }

Tensor splits_of(const Tensor& lengths) {
  return at::cat({at::zeros({1}, lengths.options()), lengths.cumsum(0)});
}

}  // namespace

void check_can_reduce_rows(const char* what, const Structure& value) {
  map_ragged(value, [&](const Structure& node) -> Structure {
    throw UnimplementedError(str(what, " of a RaggedTensor is not supported (", node,
                                 "); reduce a tensor made of it, such as its sum, or gather it"));
  });
  value.for_each_with_path([&](const std::string& path, const Leaf& leaf) {
    if (leaf.is_tensor()) return;
    throw InvalidArgumentError(str(what, " of strings",
                                   path.empty() ? "" : str(" at ", place(path)),
                                   ", which cannot be added; gather them"));
  });
}

Structure with_row_lengths(const char* what, const Structure& value, int64_t axis) {
  value.for_each([](const Leaf& leaf) {
    if (leaf.is_tensor()) collective::check_can_gather(leaf.tensor());
  });
  return map_ragged(value, [&](const Structure& node) {
    if (axis != 0) {
      throw UnimplementedError(str(what, " of a RaggedTensor along axis ", axis,
                                   " is not supported (", node,
                                   "); gather along axis 0, or make it dense with to_tensor"));
    }
    return map_splits(RaggedTensor(node), lengths_of);
  });
}

Structure with_row_splits(const Structure& gathered) {
  return map_ragged(gathered, [](const Structure& node) -> Structure {
    return RaggedTensor(map_splits(node, splits_of));
  });
}

}  // namespace cohort::internal
