// The rows of a table that a step has read.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Thread safety: none.
class RowCache {
 public:
  // The members of `ids` (strictly ascending) that it has not.
  Tensor missing(const Tensor& ids) const;
  // Takes rows over; of those that it has already it keeps its own.
  // Shapes: ids [n] of int64, strictly ascending; rows [n, ..].
  void add(const Tensor& ids, const Tensor& rows);
  void clear();

  bool empty() const { return !ids_.defined(); }
  const Tensor& ids() const { return ids_; }    // strictly ascending
  const Tensor& rows() const { return rows_; }  // one for each id
  // A copy of them from here on, where somebody else has them.
  const Tensor& writable_rows();

 private:
  Tensor ids_;
  Tensor rows_;
};

}  // namespace cohort::internal
