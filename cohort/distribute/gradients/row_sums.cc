#include "cohort/distribute/gradients/row_sums.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace cohort::internal {

RowSums add_up_rows(const Tensor& rows, const Tensor& values) {
  const int64_t count = rows.size(0);
  const auto [sorted, order] = rows.sort(/*stable=*/true, 0, /*descending=*/false);
  // The place of each value's row among the distinct ones.
  const Tensor is_next = sorted.slice(0, 1).ne(sorted.slice(0, 0, count - 1)).to(int64);
  const Tensor place = at::cat({at::zeros_like(sorted.narrow(0, 0, 1)), is_next.cumsum(0)});
  // Unlike index_add_, it adds in one order on GPUs, too: replicas must not drift apart.
  const Tensor sums =
      at::zeros_like(values).index_put_({place}, values.index_select(0, order), true);
  const Tensor distinct = sorted.narrow(0, 0, 1).repeat({count}).index_copy_(0, place, sorted);
  const Tensor all = at::arange(count, place.options());
  const Tensor used = at::where(all.le(place.narrow(0, count - 1, 1)), all, at::zeros_like(all));
  return {distinct, sums.index_select(0, used)};
}

}  // namespace cohort::internal
