#include <algorithm>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/ops/philox.h"

namespace cohort::internal {
namespace {

// Passes of passes count on: pass 1 of 3 within pass 2 of an outer repeat is number 2 * 3 + 1.
// `count` is kInfiniteSize for ever.
uint64_t epoch_of_pass(uint64_t outer_epoch, int64_t count, int64_t pass) {
  const auto number = static_cast<uint64_t>(pass);
  if (count != kInfiniteSize) return outer_epoch * static_cast<uint64_t>(count) + number;
  return outer_epoch == 0 ? number : mix_seeds(outer_epoch, number);
}

class RepeatIterator final : public DataIterator {
 public:
  RepeatIterator(std::unique_ptr<DataIterator> input, int64_t count, uint64_t epoch)
      : input_(std::move(input)), count_(count) {
    begin(epoch);
  }

  bool next(Structure& out) override {
    return advance([&] { return input_->next(out) ? 1 : 0; }) > 0;
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    const IteratorState before = save();
    try {
      return advance([&] { return input_->next_block(n, out); });
    } catch (const std::exception&) {
      // This pass may not have all of the `n` elements that fail with one: they are passed over
      // once more.
      restore(before);
      skip(n);
      throw;
    }
  }
  int64_t skip(int64_t n) override {
    int64_t skipped = 0;
    while (skipped < n) {
      const int64_t count = advance([&] { return input_->skip(n - skipped); });
      if (count == 0) break;
      skipped += count;
    }
    return skipped;
  }
  std::shared_ptr<const std::string> last_origin() const override { return input_->last_origin(); }
  void rewind(uint64_t epoch) override {
    begin(epoch);
    input_->rewind(pass_epoch());
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("epoch", static_cast<int64_t>(epoch_));
    state.set_int("pass", pass_);
    state.set_int("empty", empty_);
    state.set_child("input", input_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    epoch_ = static_cast<uint64_t>(state.get_int("epoch"));
    pass_ = state.get_int("pass", 0, count_);
    empty_ = state.get_int("empty", 0, 1) == 1;
    input_->restore(state.child("input"));
  }

 private:
  void begin(uint64_t epoch) {
    epoch_ = epoch;
    pass_ = 0;
    empty_ = true;
  }
  uint64_t pass_epoch() const { return epoch_of_pass(epoch_, count_, pass_); }
  // Runs `read` on this pass or the next one that has elements left, and gives its result. A pass
  // without elements is the end: all others would be empty too.
  template <class Read>
  int64_t advance(const Read& read) {
    while (pass_ < count_) {
      int64_t count = 0;
      try {
        count = read();
      } catch (...) {
        empty_ = false;
        throw;
      }
      if (count > 0) {
        empty_ = false;
        return count;
      }
      if (empty_) {
        pass_ = count_;
        return 0;
      }
      empty_ = true;
      if (++pass_ < count_) input_->rewind(pass_epoch());
    }
    return 0;
  }

  std::unique_ptr<DataIterator> input_;
  int64_t count_;
  uint64_t epoch_ = 0;
  int64_t pass_ = 0;
  bool empty_ = true;  // this pass has given nothing yet
};

class RepeatIndexed final : public IndexedData {
 public:
  RepeatIndexed(std::unique_ptr<IndexedData> input, int64_t count) : input_(std::move(input)) {
    const int64_t size = input_->size();
    if (size == 0 || count == 0) {
      size_ = 0;
    } else if (size >= kInfiniteSize / count) {
      size_ = kInfiniteSize;
    } else {
      size_ = size * count;
    }
  }
  int64_t size() const override { return size_; }
  void read(int64_t position, Structure& out) override {
    input_->read(position % input_->size(), out);
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  void read_block(const Positions& positions, Structure& out) override {
    const int64_t size = input_->size();
    const int64_t count = positions.size();
    if (positions.is_run() && count > 0 && positions[0] / size == positions[count - 1] / size) {
      input_->read_block(positions.shifted(-(positions[0] / size) * size, scratch_), out);
      return;
    }
    scratch_.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) scratch_[i] = positions[i] % size;
    input_->read_block(Positions::list(scratch_), out);
  }

 private:
  std::unique_ptr<IndexedData> input_;
  int64_t size_ = 0;
  std::vector<int64_t> scratch_;
};

class RepeatNode final : public IndexableNode {
 public:
  RepeatNode(DataNodePtr input, int64_t count)
      : IndexableNode("repeat", std::move(input)), count_(count) {
    if (count < -1) {
      throw InvalidArgumentError(
          str("repeat: count is ", count, "; it must be at least 0, or -1 for ever"));
    }
  }

  Attributes attributes() const override { return {{"count", str(count_)}}; }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<RepeatNode>(std::move(inputs[0]), count_);
  }
  int64_t cardinality() const override {
    const int64_t size = input().cardinality();
    if (count_ == 0 || size == 0) return 0;
    if (count_ == -1) return data::kInfiniteCardinality;
    if (size < 0) return size;
    return size >= kInfiniteSize / count_ ? data::kInfiniteCardinality : size * count_;
  }
  bool passes_file_sharding() const override { return true; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  std::unique_ptr<IndexedData> by_position(std::unique_ptr<IndexedData> elements) const override {
    return std::make_unique<RepeatIndexed>(std::move(elements), limit());
  }
  std::unique_ptr<DataIterator> in_order(const IteratorContext& context) const override {
    IteratorContext first_pass = context;
    first_pass.epoch = epoch_of_pass(context.epoch, limit(), 0);
    return std::make_unique<RepeatIterator>(input().make_iterator(first_pass), limit(),
                                            context.epoch);
  }

  int64_t limit() const { return count_ == -1 ? kInfiniteSize : count_; }

  int64_t count_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::repeat(int64_t count) const {
  return Dataset(std::make_shared<internal::RepeatNode>(node_, count), options_);
}

}  // namespace cohort::data
