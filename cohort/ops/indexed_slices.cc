#include "cohort/ops/indexed_slices.h"

#include "cohort/core/error.h"

namespace cohort {

IndexedSlices indexed_slices(const Tensor& sparse) {
  if (!sparse.defined() || !sparse.is_sparse() || sparse.sparse_dim() != 1) {
    throw InvalidArgumentError(
        internal::str("expected a tensor that is sparse in dimension 0, but got ",
                      sparse.defined() && sparse.is_sparse() ? "one that is sparse in more: " : "",
                      internal::describe(sparse)));
  }
  return {sparse._values(), sparse._indices().select(0, 0), sparse.sizes().vec()};
}

}  // namespace cohort
