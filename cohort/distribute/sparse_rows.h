// Sparse gradients of whole rows, as embeddings have them: read in the order of their ids, where
// they lie. Nothing is merged ahead; rows of one id are added up when their turn comes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/core/tensor.h"

namespace cohort::internal {

// One gradient's rows, sorted by id; those of one id in the gradient's own order.
class SparseRows {
 public:
  struct Row {
    int64_t id;
    const char* values;
  };

  // Whether `gradient` is sparse rows [.., row_size..] on the host, each of at most `max_row_size`
  // elements.
  static bool are_in(const Tensor& gradient, int64_t max_row_size);

  SparseRows() = default;
  // Takes a gradient for which are_in holds, coalesced or not. Errors: InvalidArgument (a row
  // outside of it, which libtorch lets pass where it is told not to look).
  explicit SparseRows(const Tensor& gradient);

  std::span<const Row> rows() const { return rows_; }

 private:
  Tensor values_;  // keeps them alive
  std::vector<Row> rows_;
};

// Walks over the rows of several gradients at once.
class SparseRowSum {
 public:
  void clear() { sources_.clear(); }
  bool empty() const { return sources_.empty(); }
  void add(const SparseRows& rows) { sources_.push_back({rows.rows().begin(), rows.rows().end()}); }

  // Passes over the rows before `id`.
  void skip_to(int64_t id);
  // The next id before `end` that any gradient has; `end` where none is left.
  int64_t next_id(int64_t end) const;
  // The sum of all rows of `id`, the next one, which are passed over: those of each gradient first,
  // then the gradients' in their order, as if each were dense. It is in `sum`, or the row itself
  // where there is only one. `scratch`: as long as `sum`.
  const char* take(int64_t id, int64_t row_size, DType dtype, char* sum, char* scratch);
  // Fetches into the cache what will be needed soon: rows to come, and their places in `base`, a
  // table of rows of `row_bytes`.
  void prefetch(const char* base, int64_t row_bytes) const;

 private:
  using Iterator = std::span<const SparseRows::Row>::iterator;
  struct Source {
    Iterator next;
    Iterator end;
  };

  std::vector<Source> sources_;
  std::vector<const void*> parts_;
};

}  // namespace cohort::internal
