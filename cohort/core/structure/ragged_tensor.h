// Tensors whose rows have different lengths, as members of structures.
//
//   const auto ragged = RaggedTensor::from_row_lengths(at::arange(5), {3, 0, 2});  // 0 1 2 | | 3 4
//   auto dataset = data::Dataset::from_tensor_slices(dict({{"ids", ragged}})).batch(2);
//   for (const Structure& batch : dataset) {
//     const RaggedTensor ids = batch["ids"];
//     ids.values(), ids.row_splits();
//   }
//   dataset.map([](const RaggedTensor& ids) { return ids.to_tensor(); });
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {

// The values of all rows, one row after another, and where each begins. In a structure it is a dict
// of both ({'$values', '$row_splits'}), so that it passes through datasets, strategies and files
// like any; its rows are batched, split and shuffled whole. The rows may be ragged themselves: then
// there are splits for each ragged dimension, the outermost first, and those of one dimension
// divide the rows of the next.
// Thread safety: immutable, as Tensor.
class COHORT_API RaggedTensor {
 public:
  // Row i is values [row_splits[i], row_splits[i + 1]).
  // Shapes: values [n, ..] numbers or strings; row_splits int64 [rows + 1], from 0 to n, ascending.
  // Errors: InvalidArgument (row_splits of another form: names the place).
  static RaggedTensor from_row_splits(const Leaf& values, const Tensor& row_splits);
  // Shapes: row_lengths int64 [rows], whose sum is n. Errors: InvalidArgument.
  static RaggedTensor from_row_lengths(const Leaf& values, const Tensor& row_lengths);
  static RaggedTensor from_row_lengths(const Leaf& values, const std::vector<int64_t>& row_lengths);
  // Shapes: each [n_i, ..]. Errors: InvalidArgument (none; other dimensions or dtypes differ).
  static RaggedTensor from_rows(const std::vector<Tensor>& rows);
  // A tensor of several ragged dimensions: the last splits divide the values, the others the rows
  // of the splits behind them. Errors: InvalidArgument (no splits; as from_row_splits).
  static RaggedTensor from_nested_row_splits(const Leaf& flat_values,
                                             const std::vector<Tensor>& nested_row_splits);
  // The rows of `values` in rows of their own. Errors: InvalidArgument (as from_row_splits).
  static RaggedTensor from_row_splits(const RaggedTensor& values, const Tensor& row_splits);

  // A structure that is one. Errors: InvalidArgument (it is not; row_splits of another dtype or
  // shape, or that do not end with the number of values).
  RaggedTensor(const Structure& structure);
  operator Structure() const;

  // Errors of values(): InvalidArgument (strings; see string_values).
  const Tensor& values() const { return values_.tensor(); }
  const StringTensor& string_values() const { return values_.strings(); }
  const Leaf& flat_values() const { return values_; }
  // The splits of the outermost ragged dimension.
  const Tensor& row_splits() const { return splits_[0]; }
  const std::vector<Tensor>& nested_row_splits() const { return splits_; }
  // The number of ragged dimensions.
  int64_t ragged_rank() const { return static_cast<int64_t>(splits_.size()); }
  Tensor row_lengths() const;
  int64_t nrows() const { return row_splits().size(0) - 1; }
  // Row i, [n_i, ..]. Errors: OutOfRange; InvalidArgument (rows are ragged; see row).
  Leaf operator[](int64_t i) const;
  // Row i as a tensor, or as a RaggedTensor where rows are ragged. Errors: OutOfRange.
  Structure row(int64_t i) const;
  // The rows of all rows, one after another. Errors: InvalidArgument (one ragged dimension).
  RaggedTensor inner() const;
  // Rows [begin, end). Errors: OutOfRange.
  RaggedTensor slice(int64_t begin, int64_t end) const;
  // The same rows with values of the same number, such as their embeddings.
  // Errors: InvalidArgument (another number).
  RaggedTensor with_values(const Leaf& values) const;

  // Shapes: [rows, longest, ..], with `padding` behind the shorter ones, in each ragged dimension.
  // Errors: InvalidArgument (strings).
  Tensor to_tensor(double padding = 0) const;
  // Shapes: [rows, longest] COO, of values [n]; [rows, longest, ..] with dense rows else. A
  // dimension more for each further ragged one.
  // Errors: InvalidArgument (strings).
  Tensor to_sparse() const;

 private:
  RaggedTensor(Leaf values, std::vector<Tensor> splits)
      : values_(std::move(values)), splits_(std::move(splits)) {}

  Leaf values_;
  std::vector<Tensor> splits_;  // one for each ragged dimension, the outermost first
};

// <RaggedTensor [[0, 1, 2], [], [3, 4]]>
COHORT_API std::ostream& operator<<(std::ostream& out, const RaggedTensor& tensor);

namespace internal {
// The tensor. `what`: what takes no other, for the error.
// Errors: InvalidArgument (it has several ragged dimensions).
const RaggedTensor& singly_ragged(const RaggedTensor& ragged, std::string_view what);
// What keeps a structure of kind Composite::kRagged from being a RaggedTensor; nullopt if nothing
// does. Splits between the first and the last are not looked at.
std::optional<std::string> ragged_problem(const Structure& ragged);
}  // namespace internal

}  // namespace cohort
