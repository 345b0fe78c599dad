#include <algorithm>

#include "cohort/core/caught_error.h"
#include "cohort/core/error_context.h"
#include "cohort/data/dataset.h"
#include "cohort/data/functions/answers.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/blocks.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {
using ElementFunctionPtr = std::shared_ptr<const ElementFunction>;

// How far a predicate over records reads ahead.
constexpr int64_t kBlockSize = 256;

class FilterIterator final : public CountingIterator {
 public:
  FilterIterator(std::unique_ptr<DataIterator> input, ElementFunctionPtr predicate)
      : CountingIterator(std::move(input)), predicate_(std::move(predicate)) {}

  bool next(Structure& out) override {
    while (read(out)) {
      try {
        if (is_true(predicate_->whole(out))) return true;
      } catch (...) {
        rethrow_with_context(str("filter: element ", index_ - 1));
      }
    }
    return false;
  }

 private:
  ElementFunctionPtr predicate_;
};

// A predicate over records: asked for a block of them at a time.
class BlockFilterIterator final : public DataIterator {
 public:
  BlockFilterIterator(std::unique_ptr<DataIterator> input, ElementFunctionPtr predicate)
      : input_(with_blocks(std::move(input))),
        predicate_(std::move(predicate)),
        before_block_(std::make_shared<const IteratorState>(input_->save())) {}

  bool next(Structure& out) override {
    if (!find_row()) return false;
    out = select_row(block_, row_++);
    return true;
  }
  bool has_blocks() const override { return true; }
  int64_t next_block(int64_t n, Structure& out) override {
    try {
      if (!find_row()) return 0;
    } catch (const std::exception&) {
      skip(n - 1);
      throw;
    }
    rows_.clear();
    for (; row_ < judged_ && static_cast<int64_t>(rows_.size()) < n; ++row_) {
      if (keep_[row_]) rows_.push_back(row_);
    }
    out = gather_rows(block_, Positions::list(rows_));
    return static_cast<int64_t>(rows_.size());
  }
  // Picks as far as one block goes; the last gap may begin in one block and end in another.
  int64_t pick_block(std::span<const int64_t> gaps, Structure& out) override {
    if (skip(gaps[0]) < gaps[0] || !find_row()) return 0;
    rows_ = {row_++};
    for (int64_t row = row_, gap = 0; row < judged_ && rows_.size() < gaps.size(); ++row) {
      if (!keep_[row]) continue;
      if (gap++ < gaps[rows_.size()]) continue;
      rows_.push_back(row);
      row_ = row + 1;
      gap = 0;
    }
    out = gather_rows(block_, Positions::list(rows_));
    return std::ssize(rows_);
  }
  int64_t skip(int64_t n) override {
    int64_t skipped = 0;
    while (skipped < n) {
      try {
        if (!find_row()) break;
      } catch (const std::exception&) {
        ++skipped;
        continue;
      }
      for (; row_ < judged_ && skipped < n; ++row_) skipped += keep_[row_];
    }
    return skipped;
  }
  void rewind(uint64_t epoch) override {
    drop_block();
    index_ = 0;
    input_->rewind(epoch);
    before_block_ = std::make_shared<const IteratorState>(input_->save());
  }
  // The input's state before the block, and how many of its rows have their answer: the others are
  // read again, perhaps in other blocks.
  IteratorState save() override {
    IteratorState state;
    const bool inside = row_ < size_;
    state.set_int("index", inside ? index_ : index_ + size_);
    state.set_int("row", inside ? row_ : 0);
    state.set_child("input",
                    inside ? before_block_ : std::make_shared<const IteratorState>(input_->save()));
    return state;
  }
  void restore(const IteratorState& state) override {
    drop_block();
    input_->restore(state.child("input"));
    const int64_t row = state.get_int("row", 0, kBlockSize);
    index_ = state.get_int("index", 0, kMostElements) + row;
    if (const int64_t found = input_->skip(row); found < row) {
      throw DataLossError(str("filter: the state is of element ", index_,
                              ", but the input ends after ", index_ - row + found));
    }
    before_block_ = std::make_shared<const IteratorState>(input_->save());
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }

 private:
  void drop_block() {
    index_ += size_;
    block_ = Structure();
    size_ = judged_ = row_ = 0;
    error_ = nullptr;
  }
  // Moves on to the next row that passes.
  bool find_row() {
    while (true) {
      while (row_ < judged_ && !keep_[row_]) ++row_;
      if (row_ < judged_) return true;
      if (row_ < size_) {
        judge();
      } else if (!read_block()) {
        return false;
      }
    }
  }
  bool read_block() {
    drop_block();
    before_block_ = std::make_shared<const IteratorState>(input_->save());
    if (one_by_one_ == 0) {
      try {
        size_ = input_->next_block(kBlockSize, block_);
      } catch (const std::exception&) {  // of one element: the others must not be lost with it
        input_->restore(*before_block_);
        one_by_one_ = kBlockSize;
      }
    }
    if (one_by_one_ > 0) read_one();
    keep_.assign(static_cast<size_t>(size_), 0);
    return size_ > 0;
  }
  void read_one() {
    --one_by_one_;
    try {
      size_ = input_->next_block(1, block_);
    } catch (const std::exception&) {
      ++index_;
      throw;
    }
  }
  // Asks about the rows from judged_ on. A row that fails is passed over, its error thrown when it
  // is the next in line.
  void judge() {
    if (error_) {
      row_ = ++judged_;
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
    const int64_t first = judged_;
    const Structure rest = slice_rows(block_, first, size_);
    int64_t row = 0;
    try {
      const Structure kept = predicate_->scalar->apply_block(rest, row);
      std::copy_n(kept.tensor().data_ptr<bool>(), size_ - first, keep_.begin() + first);
      judged_ = size_;
    } catch (...) {
      error_ = std::current_exception();
      if (!error_) {  // the thread goes on ending; whoever reads on finds the row's error
        error_ = thread_ended_error("the predicate");
        judge_until_error(first, row);
        throw;
      }
    }
    if (error_) judge_until_error(first, row);
  }
  void judge_until_error(int64_t first, int64_t failed) {
    try {
      std::rethrow_exception(error_);
    } catch (...) {
      try {
        rethrow_with_context(str("filter: element ", index_ + first + failed));
      } catch (...) {
        error_ = std::current_exception();
      }
    }
    if (failed > 0) {
      int64_t row = 0;
      const Structure kept =
          predicate_->scalar->apply_block(slice_rows(block_, first, first + failed), row);
      std::copy_n(kept.tensor().data_ptr<bool>(), failed, keep_.begin() + first);
    }
    judged_ = first + failed;
  }

  std::unique_ptr<DataIterator> input_;
  ElementFunctionPtr predicate_;
  std::shared_ptr<const IteratorState> before_block_;
  Structure block_;
  int64_t index_ = 0;  // of the block's first row in the input, for messages
  int64_t size_ = 0;
  int64_t judged_ = 0;      // rows before it have an answer in keep_
  int64_t row_ = 0;         // the next one
  int64_t one_by_one_ = 0;  // so many elements are read singly, after a block that failed
  std::vector<uint8_t> keep_;
  std::vector<int64_t> rows_;
  std::exception_ptr error_;  // of row judged_
};

class FilterNode final : public UnaryNode {
 public:
  FilterNode(DataNodePtr input, ElementFunctionPtr predicate)
      : UnaryNode("filter", std::move(input)), predicate_(std::move(predicate)) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<FilterNode>(std::move(inputs[0]), predicate_);
  }
  int64_t cardinality() const override { return data::kUnknownCardinality; }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    auto input_iterator =
        input().make_iterator(answers_for_records() ? context.keeping_order() : context);
    if (answers_for_records() && input_iterator->has_blocks()) {
      return std::make_unique<BlockFilterIterator>(std::move(input_iterator), predicate_);
    }
    return std::make_unique<FilterIterator>(std::move(input_iterator), predicate_);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  bool answers_for_records() const {
    const auto& scalar = predicate_->scalar;
    return scalar && !scalar->returns_tuple && !scalar->results[0].is_string &&
           scalar->results[0].dtype == boolean;
  }

  ElementFunctionPtr predicate_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::filter_erased(internal::ElementFunction fn) const {
  auto predicate = std::make_shared<const internal::ElementFunction>(std::move(fn));
  return Dataset(std::make_shared<internal::FilterNode>(node_, std::move(predicate)), options_);
}

}  // namespace cohort::data
