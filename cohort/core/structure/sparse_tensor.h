// Tensors most of whose values are 0 and not kept, as members of structures.
//
//   const SparseTensor sparse(indices, values, {3, 1000});   // indices int64 [n, 2], values [n]
//   auto dataset = data::Dataset::from_tensor_slices(dict({{"words", sparse}})).batch(2);
//   for (const Structure& batch : dataset) {
//     const SparseTensor words = batch["words"];
//     words.indices(), words.values(), words.to_dense();
//   }
#pragma once

#include <iosfwd>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {

// A tensor in libtorch's COO layout, seen as TensorFlow sees it. In a structure it is a dict of one
// ({'$coo'}), so that it passes through datasets, strategies and files like any. Values are
// numbers; sparse strings do not exist here (a RaggedTensor holds strings).
// Thread safety: immutable, as Tensor.
class COHORT_API SparseTensor {
 public:
  // Shapes: indices int64 [n, rank], values [n], dense_shape: `rank` sizes.
  // Errors: InvalidArgument (another shape or dtype; an index outside of dense_shape: names it).
  SparseTensor(const Tensor& indices, const Tensor& values, std::vector<int64_t> dense_shape);
  // The values that are not 0.
  static SparseTensor from_dense(const Tensor& dense);

  // A tensor in COO layout. Errors: InvalidArgument (another layout).
  explicit SparseTensor(Tensor coo);
  // A structure that is one, or a leaf in COO layout. Errors: InvalidArgument (it is not).
  SparseTensor(const Structure& structure);
  operator Structure() const;

  const Tensor& coo() const { return coo_; }
  // Shapes: int64 [n, rank]. The order is that of the COO tensor, which batches of datasets sort.
  Tensor indices() const;
  // Shapes: [n]; [n, ..] of a COO tensor whose last dimensions are dense.
  Tensor values() const;
  std::vector<int64_t> dense_shape() const { return coo_.sizes().vec(); }

  // A value at an index that comes twice is the sum of both.
  // Errors: InvalidArgument (default_value is not 0, and an index comes twice).
  Tensor to_dense(double default_value = 0) const;

 private:
  Tensor coo_;
};

// SparseTensor(indices=[[0, 2]], values=[1.0], dense_shape=[3, 4])
COHORT_API std::ostream& operator<<(std::ostream& out, const SparseTensor& tensor);

// A tensor in COO layout as a member of a structure. Datasets make it of COO tensors that they are
// given. Errors: InvalidArgument (another layout).
COHORT_API Structure sparse_structure(const Tensor& coo);

}  // namespace cohort
