#include "cohort/transform/graph/batch_columns.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/zeros.h>

#include "cohort/core/error.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"
#include "cohort/transform/graph/text_builder.h"

namespace cohort::internal {
namespace {

constexpr const char* kValues = "values";
constexpr const char* kLengths = "lengths";

template <class Tree>
bool is_filled_up(const Tree& tree) {  // a VarLenFeature's
  return tree.is_dict() && tree.items().size() == 2 && tree.items()[0].first == kValues &&
         tree.items()[1].first == kLengths && tree.items()[0].second.is_leaf() &&
         tree.items()[1].second.is_leaf();
}

Tensor splits_of(const Tensor& lengths) {
  return at::cat({at::zeros({1}, at::kLong), at::cumsum(lengths.to(at::kLong), 0)});
}

ColumnValue from_filled_up(const Leaf& values, const Tensor& lengths) {
  const Tensor row_splits = splits_of(lengths);
  const int64_t width = values.sizes().back();
  if (values.is_tensor()) {
    const Tensor is_there = at::arange(width).unsqueeze(0) < lengths.unsqueeze(1);
    return {.values = values.tensor().masked_select(is_there), .row_splits = row_splits};
  }
  TextBuilder texts(values.strings());
  const Tensor counts = lengths.to(at::kLong).contiguous();
  for (int64_t row = 0; row < counts.size(0); ++row) {
    for (int64_t i = 0; i < counts.data_ptr<int64_t>()[row]; ++i) {
      texts.add_part(values.strings()[row * width + i]);
    }
  }
  return {.values = std::move(texts).finish(), .row_splits = row_splits};
}

std::optional<ColumnValue> from_sparse(const Tensor& coo) {
  if (coo.dim() != 2 || coo.sparse_dim() != 2) return std::nullopt;
  const Tensor sorted = coo.coalesce();
  const Tensor lengths = at::bincount(sorted.indices()[0], {}, coo.size(0));
  return ColumnValue{.values = sorted.values(), .row_splits = splits_of(lengths)};
}

LeafType type_of(const TensorSpec& spec) {
  if (spec.is_string()) return cohort::string;
  return spec.dtype();
}

ColumnType column_type(const std::string& name, const StructureSpec& spec) {
  const Composite kind = spec.is_dict() ? composite_kind(spec) : Composite::kNone;
  if (kind == Composite::kRagged && spec.items().size() > 2) {
    throw InvalidArgumentError(str("column ", quoted(name),
                                   ": its rows are ragged themselves; columns have one ragged "
                                   "dimension"));
  }
  if (kind == Composite::kRagged || kind == Composite::kSparse) {
    return {.dtype = type_of(spec.items()[0].second.leaf()), .kind = ColumnKind::kRagged};
  }
  if (is_filled_up(spec)) {
    return {.dtype = type_of(spec.items()[0].second.leaf()), .kind = ColumnKind::kRagged};
  }
  if (!spec.is_leaf()) {
    throw InvalidArgumentError(
        str("column ", quoted(name), ": it is no tensor and not ragged, but ", spec));
  }
  const auto& shape = spec.leaf().shape();
  if (!shape.has_value()) {
    throw InvalidArgumentError(str("column ", quoted(name),
                                   ": its number of dimensions is not "
                                   "known"));
  }
  if (shape->empty()) {
    throw InvalidArgumentError(str("column ", quoted(name),
                                   ": it gives single rows; the dataset "
                                   "must give batches (dataset.batch(1024), say)"));
  }
  return {.dtype = type_of(spec.leaf()),
          .kind = ColumnKind::kDense,
          .shape = {shape->begin() + 1, shape->end()}};
}

}  // namespace

std::optional<ColumnValue> column_of(const Structure& structure) {
  if (structure.is_leaf()) {
    if (structure.leaf().is_tensor() && structure.tensor().is_sparse()) {
      return from_sparse(structure.tensor());
    }
    return ColumnValue{.values = structure.leaf()};
  }
  if (!structure.is_dict()) return std::nullopt;
  const Composite kind = composite_kind(structure);
  if (kind == Composite::kRagged) {
    const RaggedTensor ragged(structure);
    if (ragged.ragged_rank() > 1) return std::nullopt;
    return ColumnValue{.values = ragged.flat_values(), .row_splits = ragged.row_splits()};
  }
  if (kind == Composite::kSparse) return from_sparse(structure.items()[0].second.tensor());
  if (is_filled_up(structure)) {
    const Leaf& values = structure.items()[0].second.leaf();
    const Leaf& lengths = structure.items()[1].second.leaf();
    if (values.dim() == 2 && lengths.is_tensor() && lengths.dim() == 1) {
      return from_filled_up(values, lengths.tensor());
    }
  }
  return std::nullopt;
}

Structure column_structure(const ColumnValue& value) {
  if (!value.is_ragged()) return value.values;
  return RaggedTensor::from_row_splits(value.values, value.row_splits);
}

std::vector<std::pair<std::string, ColumnType>> column_types(const StructureSpec& spec) {
  if (!spec.is_dict()) {
    throw InvalidArgumentError(str(
        "a dataset of columns gives dicts, {'age': .., 'city': ..}, but this one gives ", spec));
  }
  std::vector<std::pair<std::string, ColumnType>> types;
  for (const auto& [name, member] : spec.items()) {
    types.emplace_back(name, column_type(name, member));
  }
  return types;
}

void check_column(const std::string& name, const ColumnValue& value, const ColumnType& type,
                  int64_t& rows) {
  const auto fail = [&](const std::string& found) {
    throw InvalidArgumentError(
        str("column ", quoted(name), ": expected ", describe(type), ", but got ", found));
  };
  if (value.is_ragged() != type.is_ragged()) {
    fail(value.is_ragged() ? "a ragged one" : "a dense one");
  }
  if (leaf_type(value.values) != type.dtype) fail(str("one of ", leaf_type(value.values).name()));
  if (!value.is_ragged()) {
    const auto sizes = value.values.sizes();
    bool fits = sizes.size() == type.shape.size() + 1;
    for (size_t i = 0; fits && i < type.shape.size(); ++i) {
      fits = type.shape[i] == kUnknownDim || type.shape[i] == sizes[i + 1];
    }
    if (!fits) fail(str("one of shape ", shape_str(sizes)));
  }
  const int64_t found =
      value.is_ragged() ? value.row_splits.size(0) - 1 : value.values.sizes().front();
  if (rows < 0) rows = found;
  if (rows != found) {
    throw InvalidArgumentError(str("column ", quoted(name), " has ", found,
                                   " rows, where the columns before it have ", rows));
  }
}

}  // namespace cohort::internal
