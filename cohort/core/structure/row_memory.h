// Batches whose rows are made in their place: memory of a batch is offered, a row a time, to the
// function that makes an element, and where all of its results lie in their rows the batch is there
// without a copy.
//
//   const RowBlock block(32, {224, 224, 3}, float32);
//   {
//     const RowOffer offer({block.row(i)});
//     elements.push_back(function(input));   // calls empty_result for what it returns
//   }
//   Tensor batch = batch_of_rows(elements);  // the block, or undefined: then they are stacked
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// A row of a block, which its memory keeps alive.
struct RowMemory {
  c10::Storage storage;
  std::vector<int64_t> sizes;
  DType dtype;
};

// Memory of the host for a batch.
class RowBlock {
 public:
  RowBlock(int64_t rows, std::vector<int64_t> row_sizes, DType dtype);
  RowMemory row(int64_t i) const;

 private:
  Tensor block_;
  std::vector<int64_t> row_sizes_;
};

// While it lives, empty_result of the calling thread uses these rows.
class RowOffer {
 public:
  explicit RowOffer(std::vector<RowMemory> rows);
  ~RowOffer();
  RowOffer(const RowOffer&) = delete;
  RowOffer& operator=(const RowOffer&) = delete;

 private:
  friend Tensor empty_result(at::IntArrayRef sizes, DType dtype);
  std::vector<RowMemory> rows_;
  RowOffer* const outer_;
};

// A tensor of the host for what an operation returns, uninitialised: an offered row of that shape
// and dtype that no living tensor uses, else memory of its own.
Tensor empty_result(at::IntArrayRef sizes, DType dtype);

// The batch whose rows these are, all of one block, in order and from its first on; undefined where
// they are not, or where somebody keeps one besides the caller, who would see the batch change.
// most_holders: how many handles of each tensor the caller has.
Tensor batch_of_rows(const std::vector<Tensor>& rows, size_t most_holders);
// Whether the tensor lies in a row.
bool is_row(const Tensor& tensor);

}  // namespace cohort::internal
