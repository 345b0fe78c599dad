// Sparse gradients of whole rows, as embeddings produce them: read in the order of their ids,
// without copying. Nothing is merged in advance; rows of the same id are added when that id is
// reached.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/collective/sum_tree.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// The rows of one gradient, sorted by id; rows of the same id keep the gradient's order.
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
  explicit SparseRows(const Tensor& gradient) { assign(gradient); }

  // These use the memory of earlier rows again.
  //
  // `gradient`: one for which are_in holds, coalesced or not.
  // Errors: InvalidArgument (a row outside of it, which libtorch accepts if its checks are off).
  void assign(const Tensor& gradient);
  // Rows whose ids rise and whose values lie one after another; both belong to the caller.
  void assign(std::span<const int64_t> ids, const char* values, int64_t bytes_per_row);
  // Lets go of the gradient.
  void clear();

  std::span<const Row> rows() const { return rows_; }

 private:
  Tensor values_;  // keeps them alive
  std::vector<Row> rows_;
  std::vector<Row> sorted_;  // while they are sorted
};

// Iterates over the rows of several gradients at once.
class SparseRowSum {
 public:
  void clear() {
    sources_.clear();
    additions_ = nullptr;
  }
  bool empty() const { return sources_.empty(); }
  void add(const SparseRows& rows) { sources_.push_back({rows.rows().begin(), rows.rows().end()}); }

  // Adds the gradients up in this order, which has an entry for each; null: one after another. It
  // must outlive the passes.
  void add_as(const collective::Additions* additions) { additions_ = additions; }

  // Passes over the rows before `id`.
  void skip_to(int64_t id);
  // The next id before `end` that any gradient has; `end` where none is left.
  int64_t next_id(int64_t end) const { return next_id_of(sources_, end); }
  // The sum of all rows of `id`, which must be the next one; then moves past them. The rows of each
  // gradient are added first, then the gradients in their order (add_as), as if each were dense.
  // The result is in `sum`, or is the row itself if there is only one. `scratch`: as long as `sum`.
  const char* take(int64_t id, int64_t row_size, DType dtype, char* sum, char* scratch);
  // How many rows are left, those of the same id counted each.
  int64_t num_rows() const;
  // Writes the ids that are left to `out`, each once and in order, and returns how many they are.
  int64_t write_ids(int64_t* out) const;
  // Writes the sums of the rows that are left to `out`, one after another. `scratch`: as long as
  // one.
  void take_all(int64_t row_size, DType dtype, char* out, char* scratch);
  // Prefetches into the processor's cache what will be needed soon: the next rows, and their places
  // in `tables`, which have rows of `row_bytes` and are about to be written.
  void prefetch(std::span<char* const> tables, int64_t row_bytes) const;

 private:
  using Iterator = std::span<const SparseRows::Row>::iterator;
  struct Source {
    Iterator next;
    Iterator end;
  };

  using Sources = c10::SmallVector<Source, 8>;

  static int64_t next_id_of(const Sources& sources, int64_t end);
  const char* take_in_tree(int64_t id, int64_t row_size, DType dtype, char* sum);

  Sources sources_;
  const collective::Additions* additions_ = nullptr;
  c10::SmallVector<const void*, 8> parts_;
  // These two serve take_in_tree: what each gradient has, and memory for sums of rows of one id.
  c10::SmallVector<const void*, 8> of_sources_;
  std::vector<char> own_sums_;
};

// Rows of which no two have the same id, in the order of ids.
struct MergedRows {
  std::vector<int64_t> ids;
  std::vector<char> values;  // one row after another

  // Becomes the sum of all rows of `sum`.
  void take_all(SparseRowSum& sum, int64_t row_size, DType dtype);
};

}  // namespace cohort::internal
