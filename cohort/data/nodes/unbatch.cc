#include <algorithm>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/batch_rows.h"
#include "cohort/data/iteration/composite_rows.h"
#include "cohort/data/iteration/row_specs.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

class UnbatchIterator final : public DataIterator {
 public:
  explicit UnbatchIterator(std::unique_ptr<DataIterator> input)
      : input_(std::move(input)),
        before_batch_(std::make_shared<const IteratorState>(input_->save())) {}

  bool next(Structure& out) override {
    if (!fill()) return false;
    out = select_row(batch_, row_++);
    return true;
  }
  bool has_blocks() const override { return true; }
  int64_t next_block(int64_t n, Structure& out) override {
    try {
      if (!fill()) return 0;
    } catch (const std::exception&) {
      skip(n - 1);
      throw;
    }
    const int64_t count = std::min(n, rows_ - row_);
    out = slice_rows(batch_, row_, row_ + count);
    row_ += count;
    return count;
  }
  int64_t skip(int64_t n) override {
    int64_t skipped = 0;
    while (skipped < n) {
      try {
        if (!fill()) break;
      } catch (const std::exception&) {
        ++skipped;  // a batch that fails is one failed element
        continue;
      }
      const int64_t count = std::min(n - skipped, rows_ - row_);
      row_ += count;
      skipped += count;
    }
    return skipped;
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override {
    drop_batch();
    input_->rewind(epoch);
    before_batch_ = std::make_shared<const IteratorState>(input_->save());
  }
  // The input's state before the batch, and the row: the batch is read again.
  IteratorState save() override {
    IteratorState state;
    state.set_int("row", row_ < rows_ ? row_ : 0);
    state.set_child("input", row_ < rows_ ? before_batch_
                                          : std::make_shared<const IteratorState>(input_->save()));
    return state;
  }
  void restore(const IteratorState& state) override {
    drop_batch();
    before_batch_ = state.shared_child("input");
    input_->restore(*before_batch_);
    const int64_t row = state.get_int("row", 0, kInfiniteSize);
    if (row == 0) return;
    if (!fill() || row >= rows_) {
      throw DataLossError(
          str("unbatch: the state is of row ", row, " of a batch that has only ", rows_, " now"));
    }
    row_ = row;
  }

 private:
  void drop_batch() {
    batch_ = Structure();
    rows_ = row_ = 0;
  }
  // Makes sure that there is a row left.
  bool fill() {
    while (row_ >= rows_) {
      drop_batch();
      before_batch_ = std::make_shared<const IteratorState>(input_->save());
      if (!input_->next(batch_)) return false;
      rows_ = checked_rows("unbatch", batch_);
      batch_ = with_dense_vectors(std::move(batch_));
    }
    return true;
  }

  std::unique_ptr<DataIterator> input_;
  std::shared_ptr<const IteratorState> before_batch_;
  Structure batch_;
  int64_t rows_ = 0;
  int64_t row_ = 0;  // the next one
};

class UnbatchNode final : public UnaryNode {
 public:
  explicit UnbatchNode(DataNodePtr input) : UnaryNode("unbatch", std::move(input)) {}

  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<UnbatchNode>(std::move(inputs[0]));
  }
  StructureSpec element_spec() const override { return row_spec(input().element_spec()); }
  int64_t cardinality() const override {
    const int64_t batches = input().cardinality();
    if (batches <= 0) return batches;
    const int64_t rows = input().guesses_spec() ? kUnknownDim : spec_rows(input().element_spec());
    return rows == kUnknownDim ? data::kUnknownCardinality : batches * rows;
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    return std::make_unique<UnbatchIterator>(input().make_iterator(context.keeping_order()));
  }
  bool passes_file_sharding() const override { return true; }
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::unbatch() const {
  return Dataset(std::make_shared<internal::UnbatchNode>(node_), options_);
}

}  // namespace cohort::data
