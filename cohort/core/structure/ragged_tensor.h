// Tensors whose rows have different lengths, and sparse ones, as members of structures.
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
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {

// The values of all rows, one row after another, and where each begins. In a structure it is a dict
// of both ({'$values', '$row_splits'}), so that it passes through datasets, strategies and files
// like any; its rows are batched, split and shuffled whole.
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

  // A structure that is one. Errors: InvalidArgument (it is not; row_splits of another dtype or
  // shape, or that do not end with the number of values).
  RaggedTensor(const Structure& structure);
  operator Structure() const;

  // Errors of values(): InvalidArgument (strings; see string_values).
  const Tensor& values() const { return values_.tensor(); }
  const StringTensor& string_values() const { return values_.strings(); }
  const Leaf& flat_values() const { return values_; }
  const Tensor& row_splits() const { return row_splits_; }
  Tensor row_lengths() const;
  int64_t nrows() const { return row_splits_.size(0) - 1; }
  // Row i, [n_i, ..]. Errors: OutOfRange.
  Leaf operator[](int64_t i) const;
  // The same rows with values of the same number, such as their embeddings.
  // Errors: InvalidArgument (another number).
  RaggedTensor with_values(const Leaf& values) const;

  // Shapes: [rows, longest, ..], with `padding` behind the shorter ones.
  // Errors: InvalidArgument (strings).
  Tensor to_tensor(double padding = 0) const;
  // Shapes: [rows, longest] COO, of values [n]; [rows, longest, ..] with dense rows else.
  // Errors: InvalidArgument (strings).
  Tensor to_sparse() const;

 private:
  RaggedTensor(Leaf values, Tensor row_splits)
      : values_(std::move(values)), row_splits_(std::move(row_splits)) {}

  Leaf values_;
  Tensor row_splits_;
};

// <RaggedTensor [[0, 1, 2], [], [3, 4]]>
COHORT_API std::ostream& operator<<(std::ostream& out, const RaggedTensor& tensor);

// A sparse tensor as a member of a structure: a dict of one ({'$coo'}), whose tensor() is
// libtorch's COO tensor. Datasets make it of COO tensors that they are given.
// Errors: InvalidArgument (another layout).
COHORT_API Structure sparse_structure(const Tensor& coo);

namespace internal {
// What keeps a structure of kind Composite::kRagged from being a RaggedTensor; nullopt if nothing
// does. Splits between the first and the last are not looked at.
std::optional<std::string> ragged_problem(const Structure& ragged);
}  // namespace internal

}  // namespace cohort
