#include "cohort/data/iteration/composite_rows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/data/iteration/leaf_rows.h"
#include "cohort/data/iteration/sparse_rows.h"

namespace cohort::internal {
namespace {

Structure marked_row(Structure row) { return Structure::make_dict({{kRaggedRow, std::move(row)}}); }

// The number of values up to each row, on the CPU.
struct Splits {
  explicit Splits(const RaggedTensor& ragged) : tensor(ragged.row_splits().cpu().contiguous()) {}
  int64_t operator[](int64_t i) const { return tensor.data_ptr<int64_t>()[i]; }
  Tensor tensor;
};

Leaf concat_leaves(const std::vector<Leaf>& parts) {
  if (parts[0].is_strings()) {
    std::vector<StringTensor> strings;
    for (const Leaf& part : parts) strings.push_back(part.strings());
    return concat(strings);
  }
  std::vector<Tensor> tensors;
  for (const Leaf& part : parts) tensors.push_back(part.tensor());
  return at::cat(tensors);
}

// Parts below each other. All have the same number of ragged dimensions.
RaggedTensor join(const std::vector<RaggedTensor>& parts) {
  std::vector<Leaf> values;
  for (const RaggedTensor& part : parts) values.push_back(part.flat_values());
  std::vector<Tensor> splits;
  for (size_t level = 0; level < parts[0].nested_row_splits().size(); ++level) {
    std::vector<Tensor> ends = {at::zeros({1}, int64)};
    int64_t end = 0;
    for (const RaggedTensor& part : parts) {
      const Tensor own = part.nested_row_splits()[level].cpu();
      ends.push_back(own.slice(0, 1) + end);
      end += own[-1].item<int64_t>();
    }
    splits.push_back(at::cat(ends));
  }
  return RaggedTensor::from_nested_row_splits(concat_leaves(values), splits);
}

RaggedTensor gather_ragged(const RaggedTensor& ragged, const Positions& rows) {
  if (rows.size() == 0 || (rows.is_run() && rows.stride() == 1)) {
    const int64_t first = rows.size() == 0 ? 0 : rows[0];
    return ragged.slice(first, first + rows.size());
  }
  if (ragged.ragged_rank() > 1) {
    std::vector<RaggedTensor> parts;
    for (int64_t i = 0; i < rows.size(); ++i) parts.push_back(ragged.slice(rows[i], rows[i] + 1));
    return join(parts);
  }
  const Splits splits(ragged);
  std::vector<int64_t> lengths;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const int64_t begin = splits[rows[i]];
    const int64_t length = splits[rows[i] + 1] - begin;
    lengths.push_back(length);
    for (int64_t k = 0; k < length; ++k) places.push_back(begin + k);
  }
  return RaggedTensor::from_row_lengths(gather_leaf(ragged.flat_values(), Positions::list(places)),
                                        lengths);
}

Structure stack_rows(const std::vector<Structure>& rows) {
  std::vector<Leaf> values;
  std::vector<int64_t> lengths;
  for (const Structure& row : rows) {
    values.push_back(row.leaf());
    lengths.push_back(row.leaf().sizes()[0]);
  }
  return RaggedTensor::from_row_lengths(concat_leaves(values), lengths);
}

// RaggedTensors as the rows of one with a ragged dimension more.
Structure stack_ragged(const std::vector<Structure>& elements) {
  const std::vector<RaggedTensor> rows(elements.begin(), elements.end());
  const Tensor splits = at::zeros({std::ssize(rows) + 1}, int64);
  auto* split = splits.data_ptr<int64_t>();
  for (size_t i = 0; i < rows.size(); ++i) split[i + 1] = split[i] + rows[i].nrows();
  return RaggedTensor::from_row_splits(join(rows), splits);
}

std::vector<Tensor> tensors_of(const std::vector<Structure>& structures) {
  std::vector<Tensor> tensors;
  for (const Structure& structure : structures) tensors.push_back(structure.tensor());
  return tensors;
}

}  // namespace

bool has_sparse_leaf(const Structure& structure) {
  bool found = false;
  structure.for_each([&](const Leaf& leaf) {
    found = found ||
            (leaf.is_tensor() && leaf.tensor().defined() && leaf.tensor().layout() == at::kSparse);
  });
  return found;
}

Structure with_marked_sparse(Structure structure) {
  if (!has_sparse_leaf(structure)) return structure;
  return map_nodes(structure, [](const Structure& node) -> Structure {
    if (!node.is_leaf() || !node.leaf().is_tensor() || !node.tensor().defined() ||
        node.tensor().layout() != at::kSparse) {
      return node;
    }
    return sparse_structure(node.tensor().is_coalesced() ? node.tensor()
                                                         : node.tensor().coalesce());
  });
}

Structure with_dense_vectors(Structure batch) {
  if (!has_composites(batch)) return batch;
  return map_nodes(batch, [](const Structure& node) -> Structure {
    const bool is_vector = composite_kind(node) == Composite::kSparse && node.tensor().dim() == 1;
    return is_vector ? Structure(node.tensor().to_dense()) : node;
  });
}

int64_t num_rows_of_composite(const Structure& block) {
  if (composite_kind(block) == Composite::kRagged) return RaggedTensor(block).nrows();
  return num_rows_of_leaf(block.leaf());
}

Structure select_composite(const Structure& block, int64_t row) {
  switch (composite_kind(block)) {
    case Composite::kRagged: {
      const RaggedTensor ragged = block;
      if (ragged.ragged_rank() > 1) return ragged.row(row);
      const Splits splits(ragged);
      return marked_row(ragged.flat_values().slice(splits[row], splits[row + 1]));
    }
    case Composite::kSparse: {
      const Tensor selected = sparse::select(block.tensor(), row);
      return selected.layout() == at::kSparse ? sparse_structure(selected) : Structure(selected);
    }
    default:
      return select_leaf(block.leaf(), row);
  }
}

Structure slice_composite(const Structure& block, int64_t begin, int64_t end) {
  switch (composite_kind(block)) {
    case Composite::kRagged:
      return RaggedTensor(block).slice(begin, end);
    case Composite::kSparse:
      return sparse_structure(sparse::slice(block.tensor(), begin, end));
    default:
      return marked_row(block.leaf().slice(begin, end));
  }
}

Structure gather_composite(const Structure& block, const Positions& rows) {
  switch (composite_kind(block)) {
    case Composite::kRagged:
      return gather_ragged(block, rows);
    case Composite::kSparse:
      return sparse_structure(sparse::gather(block.tensor(), rows));
    default:
      return marked_row(gather_leaf(block.leaf(), rows));
  }
}

bool joinable(const Structure& a, const Structure& b, bool stacked) {
  if (composite_kind(a) != Composite::kSparse) {  // the values' dimension 0 may differ
    return can_join(a[size_t{0}].leaf(), b[size_t{0}].leaf(), 1);
  }
  return a.tensor().sparse_dim() == b.tensor().sparse_dim() &&
         can_join(a.leaf(), b.leaf(), stacked ? 0 : 1);
}

Structure stack_composites(const std::vector<Structure>& elements) {
  switch (composite_kind(elements[0])) {
    case Composite::kRaggedRow:
      return stack_rows(elements);
    case Composite::kSparse:
      return sparse_structure(sparse::stack(tensors_of(elements)));
    default:
      return stack_ragged(elements);
  }
}

Structure concat_composites(const std::vector<Structure>& blocks) {
  switch (composite_kind(blocks[0])) {
    case Composite::kRagged:
      return join({blocks.begin(), blocks.end()});
    case Composite::kSparse:
      return sparse_structure(sparse::concat(tensors_of(blocks)));
    default: {
      std::vector<Leaf> rows;
      for (const Structure& block : blocks) rows.push_back(block.leaf());
      return marked_row(concat_leaves(rows));
    }
  }
}

}  // namespace cohort::internal
