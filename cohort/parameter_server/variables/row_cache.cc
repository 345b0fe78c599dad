#include "cohort/parameter_server/variables/row_cache.h"

#include <ATen/ops/cat.h>

#include <utility>

#include "cohort/parameter_server/store/row_ids.h"

namespace cohort::internal {

Tensor RowCache::missing(const Tensor& ids) const {
  if (empty()) return ids;
  return ids.index_select(0, (positions_in(ids_, ids) < 0).nonzero().flatten());
}

void RowCache::add(const Tensor& ids, const Tensor& rows) {
  if (empty()) {
    ids_ = ids;
    rows_ = rows.contiguous();
    return;
  }
  const Tensor unknown = (positions_in(ids_, ids) < 0).nonzero().flatten();
  if (unknown.numel() == 0) return;
  const Tensor all = at::cat({ids_, ids.index_select(0, unknown)});
  const DistinctRows sorted = distinct_rows(all);
  const Tensor together = at::cat({rows_, rows.index_select(0, unknown)});
  // No id comes twice, so that each row has a place of its own.
  rows_ = gather_rows(together, sorted.positions.argsort());
  ids_ = sorted.ids;
}

const Tensor& RowCache::writable_rows() {
  if (rows_.use_count() > 1 || rows_.storage().use_count() > 1) rows_ = rows_.clone();
  return rows_;
}

void RowCache::clear() {
  ids_ = Tensor();
  rows_ = Tensor();
}

}  // namespace cohort::internal
