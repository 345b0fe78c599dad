#include <algorithm>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/counting_iterator.h"

namespace cohort::internal {
namespace {

class TakeIterator final : public CountingIterator {
 public:
  TakeIterator(std::unique_ptr<DataIterator> input, int64_t count)
      : CountingIterator(std::move(input)), count_(count) {}

  bool next(Structure& out) override { return index_ < count_ && read(out); }
  bool has_blocks() const override { return input_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    n = std::min(n, count_ - index_);
    return n == 0 ? 0 : read_block(n, out);
  }
  int64_t skip(int64_t n) override { return pass_over(std::min(n, count_ - index_)); }
  void restore(const IteratorState& state) override {
    CountingIterator::restore(state);
    index_ = state.get_int("index", 0, count_);
  }

 private:
  const int64_t count_;
};

class TakeIndexed final : public IndexedData {
 public:
  TakeIndexed(std::unique_ptr<IndexedData> input, int64_t count)
      : input_(std::move(input)), size_(std::min(input_->size(), count)) {}
  int64_t size() const override { return size_; }
  void read(int64_t position, Structure& out) override { input_->read(position, out); }
  bool has_blocks() const override { return input_->has_blocks(); }
  void read_block(const Positions& positions, Structure& out) override {
    input_->read_block(positions, out);
  }

 private:
  std::unique_ptr<IndexedData> input_;
  int64_t size_;
};

class TakeNode final : public IndexableNode {
 public:
  TakeNode(DataNodePtr input, int64_t count)
      : IndexableNode("take", std::move(input)), count_(count) {
    if (count < -1) {
      throw InvalidArgumentError(str("take: count is ", count, "; it must be at least 0, or -1"));
    }
  }

  Attributes attributes() const override { return {{"count", str(count_)}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<TakeNode>(std::move(inputs[0]), count_);
  }
  int64_t cardinality() const override {
    const int64_t size = input().cardinality();
    if (size == data::kUnknownCardinality || count_ == -1) return size;
    return size == data::kInfiniteCardinality ? count_ : std::min(size, count_);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  std::unique_ptr<IndexedData> by_position(std::unique_ptr<IndexedData> elements) const override {
    return std::make_unique<TakeIndexed>(std::move(elements), limit());
  }
  std::unique_ptr<DataIterator> in_order(const IteratorContext& context) const override {
    return std::make_unique<TakeIterator>(input().make_iterator(context), limit());
  }

  int64_t limit() const { return count_ == -1 ? kInfiniteSize : count_; }

  int64_t count_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::take(int64_t count) const {
  return Dataset(std::make_shared<internal::TakeNode>(node_, count), options_);
}

}  // namespace cohort::data
