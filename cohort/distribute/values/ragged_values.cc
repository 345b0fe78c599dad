#include "cohort/distribute/values/ragged_values.h"

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

Structure ragged_of(const Leaf& values, const Tensor& rows) {
  return Structure::make_dict({{kRaggedValues, values}, {kRowSplits, rows}});
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
    const RaggedTensor ragged = node;
    return ragged_of(ragged.flat_values(), ragged.row_lengths());
  });
}

Structure with_row_splits(const Structure& gathered) {
  return map_ragged(gathered, [](const Structure& node) -> Structure {
    return RaggedTensor::from_row_lengths(node[0].leaf(), node[1].tensor());
  });
}

}  // namespace cohort::internal
