#include <algorithm>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {
namespace {

class SkipIterator final : public DataIterator {
 public:
  SkipIterator(std::unique_ptr<DataIterator> input, int64_t count)
      : input_(std::move(input)), count_(count) {}

  bool next(Structure& out) override {
    pass_over();
    return input_->next(out);
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    pass_over();
    return input_->next_block(n, out);
  }
  int64_t skip(int64_t n) override {
    pass_over();
    return input_->skip(n);
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override {
    skipped_ = false;
    input_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("skipped", skipped_);
    state.set_child("input", input_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    skipped_ = state.get_int("skipped", 0, 1) == 1;
    input_->restore(state.child("input"));
  }

 private:
  void pass_over() {
    if (skipped_) return;
    skipped_ = true;
    input_->skip(count_);
  }

  std::unique_ptr<DataIterator> input_;
  int64_t count_;
  bool skipped_ = false;
};

class SkipIndexed final : public IndexedData {
 public:
  SkipIndexed(std::unique_ptr<IndexedData> input, int64_t count)
      : input_(std::move(input)), count_(std::min(count, input_->size())) {}
  int64_t size() const override {
    return input_->size() == kInfiniteSize ? kInfiniteSize : input_->size() - count_;
  }
  void read(int64_t position, Structure& out) override {
    input_->read(scaled_position(position, 1, count_), out);
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  void read_block(const Positions& positions, Structure& out) override {
    input_->read_block(positions.shifted(count_, scratch_), out);
  }

 private:
  std::unique_ptr<IndexedData> input_;
  int64_t count_;
  std::vector<int64_t> scratch_;
};

class SkipNode final : public IndexableNode {
 public:
  SkipNode(DataNodePtr input, int64_t count)
      : IndexableNode("skip", std::move(input)), count_(count) {
    if (count < 0) {
      throw InvalidArgumentError(str("skip: count is ", count, "; it must be at least 0, or -1"));
    }
  }

  Attributes attributes() const override { return {{"count", str(count_)}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<SkipNode>(std::move(inputs[0]), count_);
  }
  int64_t cardinality() const override {
    const int64_t size = input().cardinality();
    return size < 0 ? size : std::max<int64_t>(size - count_, 0);
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  std::unique_ptr<IndexedData> by_position(std::unique_ptr<IndexedData> elements) const override {
    return std::make_unique<SkipIndexed>(std::move(elements), count_);
  }
  std::unique_ptr<DataIterator> in_order(const IteratorContext& context) const override {
    return std::make_unique<SkipIterator>(input().make_iterator(context), count_);
  }

  int64_t count_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::skip(int64_t count) const {
  // Skipping everything must not read it: an infinite input has no end to find.
  if (count == -1) return take(0);
  return Dataset(std::make_shared<internal::SkipNode>(node_, count), options_);
}

}  // namespace cohort::data
