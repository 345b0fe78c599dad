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
  // Takes a gradient for which are_in holds, coalesced or not.
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
  // Adds up all rows of `id`, the next one, into `sum` and passes over them: those of each gradient
  // first, then the gradients' in their order, as if each were dense. `scratch`: as long as `sum`.
  void take(int64_t id, int64_t row_size, DType dtype, char* sum, char* scratch);

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
