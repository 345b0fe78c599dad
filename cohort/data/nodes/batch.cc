#include <algorithm>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/batch_rows.h"
#include "cohort/data/iteration/blocks.h"
#include "cohort/data/iteration/counting_iterator.h"
#include "cohort/data/iteration/origin.h"
#include "cohort/data/iteration/row_source.h"
#include "cohort/data/iteration/row_specs.h"
#include "cohort/data/iteration/stacking.h"

namespace cohort::internal {
namespace {

class BatchIterator final : public CountingIterator {
 public:
  BatchIterator(std::unique_ptr<DataIterator> input, int64_t batch_size, bool drop_remainder)
      : CountingIterator(std::move(input)),
        batch_size_(batch_size),
        drop_remainder_(drop_remainder) {
    if (auto* rows = dynamic_cast<MakesRows*>(input_.get())) rows->expect_batches(batch_size);
  }

  bool next(Structure& out) override {
    const int64_t rows = read_counted(
        index_, batch_size_, [&] { return input_->has_blocks() ? join_blocks(out) : stack(out); });
    return rows == batch_size_ || (rows > 0 && !drop_remainder_);
  }
  int64_t skip(int64_t n) override {
    const int64_t rows = pass_over(std::min(n, kInfiniteSize / batch_size_) * batch_size_);
    return num_batches(rows, batch_size_, drop_remainder_);
  }
  std::shared_ptr<const std::string> last_origin() const override {
    return of_several("a batch", *input_);
  }

 private:
  // Nearly always one block, which is the batch.
  int64_t join_blocks(Structure& out) {
    int64_t rows = 0;
    elements_.clear();
    first_indices_.clear();
    while (rows < batch_size_) {
      const int64_t more = input_->next_block(batch_size_ - rows, out);
      if (more == 0) break;
      if (more == batch_size_) return more;
      first_indices_.push_back(index_ + rows);
      rows += more;
      elements_.push_back(std::move(out));
    }
    if (rows > 0) out = concat_blocks(elements_, Positions::list(first_indices_));
    elements_.clear();
    return rows;
  }
  int64_t stack(Structure& out) {
    collect(*input_, batch_size_, elements_);
    const auto rows = std::ssize(elements_);
    if (rows > 0) out = stack_elements(elements_, Positions::run(index_, rows));
    elements_.clear();
    return rows;
  }

  int64_t batch_size_;
  bool drop_remainder_;
  std::vector<Structure> elements_;  // of a batch, or blocks of them; kept for its memory alone
  std::vector<int64_t> first_indices_;
};

class BatchIndexed final : public IndexedData {
 public:
  BatchIndexed(std::unique_ptr<IndexedData> input, int64_t batch_size, bool drop_remainder)
      : input_(std::move(input)), batch_size_(batch_size), drop_remainder_(drop_remainder) {}
  int64_t size() const override {
    const int64_t rows = input_->size();
    if (rows == kInfiniteSize) return kInfiniteSize;
    return num_batches(rows, batch_size_, drop_remainder_);
  }
  void read(int64_t position, Structure& out) override {
    const int64_t size = input_->size();
    const int64_t first = scaled_position(position, batch_size_, 0);
    if (size == kInfiniteSize) scaled_position(position, batch_size_, batch_size_ - 1);
    const int64_t rows = std::min(batch_size_, size - first);
    input_->read_block(Positions::run(first, rows), out);
  }

 private:
  std::unique_ptr<IndexedData> input_;
  int64_t batch_size_;
  bool drop_remainder_;
};

class BatchNode final : public IndexableNode {
 public:
  BatchNode(DataNodePtr input, int64_t batch_size, data::BatchOptions options)
      : IndexableNode("batch", std::move(input)), batch_size_(batch_size), options_(options) {
    if (batch_size < 1) {
      throw InvalidArgumentError(
          str("batch: batch_size is ", batch_size, "; it must be at least 1"));
    }
  }

  Attributes attributes() const override {
    Attributes attributes = {{"batch_size", str(batch_size_)}};
    if (options_.drop_remainder) attributes.emplace_back("drop_remainder", "true");
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<BatchNode>(std::move(inputs[0]), batch_size_, options_);
  }
  StructureSpec element_spec() const override {
    const int64_t rows = options_.drop_remainder ? batch_size_ : kUnknownDim;
    return stacked_spec(input().element_spec(), rows);
  }
  int64_t cardinality() const override {
    const int64_t rows = input().cardinality();
    if (rows < 0) return rows;
    return num_batches(rows, batch_size_, options_.drop_remainder);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return batch_size_; }

 private:
  std::unique_ptr<IndexedData> by_position(std::unique_ptr<IndexedData> elements) const override {
    return std::make_unique<BatchIndexed>(std::move(elements), batch_size_,
                                          options_.drop_remainder);
  }
  std::unique_ptr<DataIterator> in_order(const IteratorContext& context) const override {
    return std::make_unique<BatchIterator>(input().make_iterator(context), batch_size_,
                                           options_.drop_remainder);
  }

  int64_t batch_size_;
  data::BatchOptions options_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::batch(int64_t batch_size, BatchOptions options) const {
  return Dataset(std::make_shared<internal::BatchNode>(node_, batch_size, options), options_);
}

}  // namespace cohort::data
