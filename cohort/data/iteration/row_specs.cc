#include "cohort/data/iteration/row_specs.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/data/iteration/sparse_rows.h"

namespace cohort::internal {
namespace {

// `dimensions`: the number of ragged dimensions; only the rows of the outermost are known.
StructureSpec ragged_spec(const TensorSpec& values, int64_t rows, size_t dimensions) {
  StructureSpec::Dict items = {{kRaggedValues, values}};
  const int64_t splits = rows == kUnknownDim ? kUnknownDim : rows + 1;
  for (size_t level = 0; level < dimensions; ++level) {
    items.emplace_back(row_splits_key(level),
                       TensorSpec({{level == 0 ? splits : kUnknownDim}}, int64));
  }
  return StructureSpec::make_dict(std::move(items));
}

size_t ragged_dimensions(const StructureSpec& ragged) { return ragged.items().size() - 1; }

const TensorSpec& first_leaf(const StructureSpec& composite) {
  return composite.items()[0].second.leaf();
}

StructureSpec with_first_leaf(const StructureSpec& composite, TensorSpec leaf) {
  StructureSpec::Dict items = composite.items();
  items[0].second = std::move(leaf);
  return StructureSpec::make_dict(std::move(items));
}

}  // namespace

StructureSpec stacked_spec(const StructureSpec& element, int64_t rows) {
  return map_nodes(element, [rows](const StructureSpec& node) -> StructureSpec {
    switch (composite_kind(node)) {
      case Composite::kNone:
        return node.leaf().with_leading_dim(rows);
      case Composite::kSparse:
        return with_first_leaf(node, first_leaf(node).with_leading_dim(rows));
      case Composite::kRaggedRow:
        return ragged_spec(first_leaf(node), rows, 1);
      case Composite::kRagged:
        break;
    }
    return ragged_spec(first_leaf(node), rows, ragged_dimensions(node) + 1);
  });
}

StructureSpec row_spec(const StructureSpec& batch) {
  return map_nodes(batch, [](const StructureSpec& node) -> StructureSpec {
    switch (composite_kind(node)) {
      case Composite::kNone:
        return node.leaf().without_leading_dim();
      case Composite::kSparse: {
        const TensorSpec row = first_leaf(node).without_leading_dim();
        // A row is dense where nothing sparse is left.
        return row.shape() && row.shape()->empty() ? row : with_first_leaf(node, row);
      }
      case Composite::kRaggedRow:
        return first_leaf(node).without_leading_dim();
      case Composite::kRagged:
        break;
    }
    const TensorSpec values = first_leaf(node).with_batch_dim(kUnknownDim);
    const size_t dimensions = ragged_dimensions(node);
    if (dimensions > 1) return ragged_spec(values, kUnknownDim, dimensions - 1);
    return StructureSpec::make_dict({{kRaggedRow, values}});
  });
}

StructureSpec spec_with_rows(const StructureSpec& batch, int64_t rows) {
  return map_nodes(batch, [rows](const StructureSpec& node) -> StructureSpec {
    switch (composite_kind(node)) {
      case Composite::kNone:
        return node.leaf().with_batch_dim(rows);
      case Composite::kSparse:
        return with_first_leaf(node, first_leaf(node).with_batch_dim(rows));
      case Composite::kRaggedRow:
        return with_first_leaf(node, first_leaf(node).with_batch_dim(rows));
      case Composite::kRagged:
        break;
    }
    return ragged_spec(first_leaf(node), rows, ragged_dimensions(node));
  });
}

int64_t spec_rows(const StructureSpec& batch) {
  int64_t rows = kUnknownDim;
  const auto see = [&](const TensorSpec& leaf, int64_t more) {
    if (!leaf.shape() || leaf.shape()->empty() || leaf.shape()->front() == kUnknownDim) return;
    if (rows == kUnknownDim) rows = leaf.shape()->front() - more;
  };
  map_nodes(batch, [&](const StructureSpec& node) -> StructureSpec {
    const Composite kind = composite_kind(node);
    if (kind == Composite::kNone) see(node.leaf(), 0);
    if (kind == Composite::kSparse) see(first_leaf(node), 0);
    if (kind == Composite::kRagged) see(node.items()[1].second.leaf(), 1);
    return node;
  });
  return rows;
}

Structure empty_rows(const StructureSpec& batch, FunctionRef<Leaf(const TensorSpec&)> empty) {
  if (batch.is_tuple()) {
    std::vector<Structure> members;
    for (const auto& member : batch.members()) members.push_back(empty_rows(member, empty));
    return Structure::make_tuple(std::move(members));
  }
  if (batch.is_leaf()) return empty(batch.leaf());
  const Composite kind = composite_kind(batch);
  if (kind == Composite::kRagged) {
    return RaggedTensor::from_nested_row_splits(
        empty(first_leaf(batch)),
        std::vector<Tensor>(ragged_dimensions(batch), at::zeros({1}, int64)));
  }
  if (kind == Composite::kSparse) {
    const Leaf dense = empty(first_leaf(batch));
    return sparse_structure(sparse::empty(dense.sizes(), dense.tensor().scalar_type()));
  }
  Structure::Dict items;
  for (const auto& [key, member] : batch.items())
    items.emplace_back(key, empty_rows(member, empty));
  return Structure::make_dict(std::move(items));
}

}  // namespace cohort::internal
