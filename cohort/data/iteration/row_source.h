// Rows for the results of a map whose elements are stacked: what its elements look like it learns
// from those that came before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cohort/core/structure/row_memory.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// An iterator that may make its elements in the rows of a batch.
class MakesRows {
 public:
  // Says that the caller stacks each `rows` elements that follow.
  virtual void expect_batches(int64_t rows) = 0;

 protected:
  ~MakesRows() = default;
};

// Thread safety: none. The rows that it gives may be used on any thread.
class RowSource {
 public:
  // How many elements are stacked together, from the next one on.
  void expect_batches(int64_t rows) { batch_rows_ = rows; }
  // The rows of the next element, to be offered to what makes it; none where nobody stacks, before
  // it is known what elements look like, and where they did not take those of former batches.
  std::vector<RowMemory> next() {
    const bool none = batch_rows_ < 2 || refused_ == kMostRefused;
    return none ? std::vector<RowMemory>() : next_in_batch();
  }
  // Looks at an element that was made; they come in order.
  void learn(const Structure& element) {
    if (batch_rows_ < 2 || refused_ == kMostRefused) return;
    if (made_++ % batch_rows_ == 0) learn_from_first(element);
  }
  // The next element is the first of a batch.
  void restart() {
    place_ = made_ = started_ = 0;
    offered_from_ = kNever;
  }

 private:
  static constexpr int kMostRefused = 2;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  static constexpr size_t kLeastBytes = size_t{16} << 10;  // below this a copy costs nothing
  struct Form {
    std::vector<int64_t> sizes;
    DType dtype;
  };
  static bool is_worth_a_row(const Tensor& tensor) {
    return tensor.defined() && tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
           !tensor.requires_grad() && tensor.nbytes() >= kLeastBytes;
  }
  std::vector<RowMemory> next_in_batch();
  void learn_from_first(const Structure& element);

  int64_t batch_rows_ = 0;
  int64_t place_ = 0;              // of the next element, in its batch
  int64_t made_ = 0;               // elements that were looked at
  std::vector<Form> forms_;        // of the leaves that are worth a row
  std::vector<RowBlock> blocks_;   // of the present batch
  int64_t started_ = 0;            // batches of which a row was asked for
  int64_t offered_from_ = kNever;  // the first batch, of all up to now, that had rows to offer
  int refused_ = 0;                // batches in turn that took no row
};

inline std::vector<RowMemory> RowSource::next_in_batch() {
  if (place_ == 0) {
    blocks_.clear();
    for (const Form& form : forms_) blocks_.emplace_back(batch_rows_, form.sizes, form.dtype);
    offered_from_ = blocks_.empty() ? kNever : std::min(offered_from_, started_);
    ++started_;
  }
  std::vector<RowMemory> rows;
  for (const RowBlock& block : blocks_) rows.push_back(block.row(place_));
  place_ = (place_ + 1) % batch_rows_;
  if (place_ == 0) blocks_.clear();  // the batch is its rows' alone
  return rows;
}

inline void RowSource::learn_from_first(const Structure& element) {
  bool taken = false;
  std::vector<Form> forms;
  element.for_each([&](const Leaf& leaf) {
    if (!leaf.is_tensor() || !is_worth_a_row(leaf.tensor())) return;
    taken = taken || is_row(leaf.tensor());
    forms.push_back({leaf.tensor().sizes().vec(), leaf.tensor().scalar_type()});
  });
  forms_ = std::move(forms);
  const bool was_offered = (made_ - 1) / batch_rows_ >= offered_from_;
  if (was_offered) refused_ = taken ? 0 : refused_ + 1;
}

}  // namespace cohort::internal
