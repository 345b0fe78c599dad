#include "cohort/data/dataset.h"
#include "cohort/data/node.h"

namespace cohort::internal {
namespace {

class ShardIterator final : public DataIterator {
 public:
  ShardIterator(std::unique_ptr<DataIterator> input, int64_t num_shards, int64_t index)
      : input_(std::move(input)), num_shards_(num_shards), index_(index) {}

  bool next(Structure& out) override {
    input_->skip(std::exchange(gap_, num_shards_ - 1));
    return input_->next(out);
  }
  int64_t skip(int64_t n) override {
    for (int64_t skipped = 0; skipped < n; ++skipped) {
      input_->skip(std::exchange(gap_, num_shards_ - 1));
      if (input_->skip(1) == 0) return skipped;
    }
    return n;
  }
  void rewind(uint64_t epoch) override {
    gap_ = index_;
    input_->rewind(epoch);
  }
  IteratorState save() const override {
    IteratorState state;
    state.set_int("gap", gap_);
    state.set_child("input", input_->save());
    return state;
  }
  void restore(const IteratorState& state) override {
    gap_ = state.get_int("gap", 0, num_shards_ - 1);
    input_->restore(state.child("input"));
  }

 private:
  std::unique_ptr<DataIterator> input_;
  int64_t num_shards_;
  int64_t index_;
  int64_t gap_ = index_;  // elements of others before the next of ours
};

class ShardIndexed final : public IndexedData {
 public:
  ShardIndexed(std::unique_ptr<IndexedData> input, int64_t num_shards, int64_t index)
      : input_(std::move(input)), num_shards_(num_shards), index_(index) {}
  int64_t size() const override {
    const int64_t size = input_->size();
    if (size == kInfiniteSize) return kInfiniteSize;
    return size / num_shards_ + (index_ < size % num_shards_ ? 1 : 0);
  }
  void read(int64_t position, Structure& out) override {
    input_->read(position * num_shards_ + index_, out);
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  void read_block(const Positions& positions, Structure& out) override {
    input_->read_block(positions.scaled(num_shards_, index_, scratch_), out);
  }

 private:
  std::unique_ptr<IndexedData> input_;
  int64_t num_shards_;
  int64_t index_;
  std::vector<int64_t> scratch_;
};

class ShardNode final : public UnaryNode {
 public:
  ShardNode(DataNodePtr input, int64_t num_shards, int64_t index)
      : UnaryNode("shard", std::move(input)), num_shards_(num_shards), index_(index) {
    if (num_shards < 1) {
      throw InvalidArgumentError(
          str("shard: num_shards is ", num_shards, "; it must be at least 1"));
    }
    if (index < 0 || index >= num_shards) {
      throw InvalidArgumentError(str("shard: index is ", index, "; with ", num_shards,
                                     " shards it must be in [0, ", num_shards, ")"));
    }
  }

  Attributes attributes() const override {
    return {{"num_shards", str(num_shards_)}, {"index", str(index_)}};
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ShardNode>(std::move(inputs[0]), num_shards_, index_);
  }
  int64_t cardinality() const override {
    const int64_t size = input().cardinality();
    return size < 0 ? size : size / num_shards_ + (index_ < size % num_shards_ ? 1 : 0);
  }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (auto indexed = make_indexed()) {
      return std::make_unique<IndexedIterator>(std::move(indexed));
    }
    return std::make_unique<ShardIterator>(input().make_iterator(context), num_shards_, index_);
  }
  std::unique_ptr<IndexedData> make_indexed() const override {
    auto indexed = input().make_indexed();
    if (!indexed) return nullptr;
    return std::make_unique<ShardIndexed>(std::move(indexed), num_shards_, index_);
  }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  int64_t num_shards_;
  int64_t index_;
};

}  // namespace
}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::shard(int64_t num_shards, int64_t index) const {
  return Dataset(std::make_shared<internal::ShardNode>(node_, num_shards, index), options_);
}

}  // namespace cohort::data
