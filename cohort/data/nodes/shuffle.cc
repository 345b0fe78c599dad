#include <algorithm>
#include <span>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/graph/rewrite.h"
#include "cohort/data/nodes/shuffle_elements.h"
#include "cohort/data/nodes/shuffle_order.h"
#include "cohort/data/nodes/shuffle_seeds.h"
#include "cohort/ops/random.h"

// Three ways to shuffle, by what the input can do:
//   - it can be read at any position and the buffer holds all of it: a permutation of positions;
//   - it can be read at any position: a buffer of positions;
//   - it can only be read in order: a buffer of elements.
// The last two draw alike, and so give one order.
namespace cohort::internal {
namespace {

class PermutationIterator final : public DataIterator {
 public:
  PermutationIterator(std::unique_ptr<IndexedData> input, ShuffleSeed seed, uint64_t epoch)
      : input_(std::move(input)), seed_(seed), order_(input_->size()) {
    rewind(epoch);
  }

  bool next(Structure& out) override {
    if (position_ >= input_->size()) return false;
    input_->read(order_.get(position_++, 1)[0], out);
    return true;
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    const int64_t count = std::min(n, input_->size() - position_);
    if (count == 0) return 0;
    const auto positions = order_.get(position_, count);
    position_ += count;
    input_->read_block(Positions::list(positions), out);
    return count;
  }
  int64_t skip(int64_t n) override {
    const int64_t count = std::min(n, input_->size() - position_);
    position_ += count;
    return count;
  }
  void rewind(uint64_t epoch) override {
    epoch_ = seed_.epoch(epoch);
    position_ = 0;
    order_.reset(seed_.seed, epoch_);
  }
  IteratorState save() override {
    IteratorState state;
    state.set_int("seed", static_cast<int64_t>(seed_.seed));
    state.set_int("epoch", static_cast<int64_t>(epoch_));
    state.set_int("position", position_);
    return state;
  }
  void restore(const IteratorState& state) override {
    seed_.seed = static_cast<uint64_t>(state.get_int("seed"));
    epoch_ = static_cast<uint64_t>(state.get_int("epoch"));
    position_ = state.get_int("position", 0, input_->size());
    order_.reset(seed_.seed, epoch_);
  }

 private:
  std::unique_ptr<IndexedData> input_;
  ShuffleSeed seed_;
  Permutation order_;
  uint64_t epoch_ = 0;
  int64_t position_ = 0;
};

class PositionBufferIterator final : public DataIterator {
 public:
  PositionBufferIterator(std::unique_ptr<IndexedData> input, ShuffleSeed seed, int64_t capacity,
                         uint64_t epoch)
      : input_(std::move(input)), seed_(seed), buffer_(capacity) {
    rewind(epoch);
  }

  bool next(Structure& out) override {
    if (draw(1) == 0) return false;
    input_->read(drawn_[0], out);
    return true;
  }
  bool has_blocks() const override { return input_->has_blocks(); }
  int64_t next_block(int64_t n, Structure& out) override {
    const int64_t count = draw(n);
    if (count > 0) input_->read_block(Positions::list(drawn_), out);
    return count;
  }
  int64_t skip(int64_t n) override {
    int64_t skipped = 0;
    while (skipped < n && draw(1) == 1) ++skipped;
    return skipped;
  }
  void rewind(uint64_t epoch) override { buffer_.reset(seed_.seed, seed_.epoch(epoch)); }
  IteratorState save() override {
    IteratorState state;
    buffer_.save(state);
    return state;
  }
  void restore(const IteratorState& state) override {
    buffer_.restore(state, std::min(input_->size(), kMostElements));
    seed_.seed = buffer_.seed();
  }

 private:
  int64_t draw(int64_t n) {
    drawn_.clear();
    while (static_cast<int64_t>(drawn_.size()) < n) {
      while (!buffer_.full() && buffer_.next_position() < input_->size()) buffer_.push();
      if (buffer_.empty()) break;
      drawn_.push_back(buffer_.draw().position);
    }
    return static_cast<int64_t>(drawn_.size());
  }

  std::unique_ptr<IndexedData> input_;
  ShuffleSeed seed_;
  ShuffleBuffer buffer_;
  std::vector<int64_t> drawn_;
};

class ShuffleNode final : public UnaryNode {
 public:
  ShuffleNode(DataNodePtr input, int64_t buffer_size, ShuffleSeed seed)
      : UnaryNode("shuffle", std::move(input)), buffer_size_(buffer_size), seed_(seed) {
    if (buffer_size < 1) {
      throw InvalidArgumentError(
          str("shuffle: buffer_size is ", buffer_size, "; it must be at least 1"));
    }
  }

  Attributes attributes() const override {
    Attributes attributes = {{"buffer_size", str(buffer_size_)}};
    if (seed_.origin == SeedOrigin::kGiven) attributes.emplace_back("seed", str(seed_.seed));
    if (seed_.origin == SeedOrigin::kAgreed) attributes.emplace_back("seed", "agreed");
    if (!seed_.reshuffle) attributes.emplace_back("reshuffle_each_iteration", "false");
    return attributes;
  }
  DataNodePtr with_inputs(std::vector<DataNodePtr> inputs) const override {
    return std::make_shared<ShuffleNode>(std::move(inputs[0]), buffer_size_, seed_);
  }
  std::optional<uint64_t> drawn_seed() const override {
    return seed_.origin == SeedOrigin::kDrawn ? std::optional(seed_.seed) : std::nullopt;
  }
  DataNodePtr with_agreed_seed(uint64_t seed) const override {
    return std::make_shared<ShuffleNode>(inputs()[0], buffer_size_,
                                         ShuffleSeed{seed, SeedOrigin::kAgreed, seed_.reshuffle});
  }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<DataIterator> make_iterator(const IteratorContext& context) const override {
    if (context.probing) return input().make_iterator(context);
    if (auto indexed = input().make_indexed()) {
      if (indexed->size() <= std::min(buffer_size_, Permutation::kMaxSize)) {
        return std::make_unique<PermutationIterator>(std::move(indexed), seed_, context.epoch);
      }
      return std::make_unique<PositionBufferIterator>(std::move(indexed), seed_, buffer_size_,
                                                      context.epoch);
    }
    return make_shuffled_elements(input().make_iterator(context.keeping_order()),
                                  input().cardinality(), seed_, buffer_size_, context.epoch);
  }
  bool passes_file_sharding() const override { return true; }
  ShardingRole sharding_role() const override { return ShardingRole::kShuffle; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  int64_t buffer_size_;
  ShuffleSeed seed_;
};

}  // namespace

std::vector<uint64_t> drawn_seeds(const DataNodePtr& root) {
  std::vector<uint64_t> seeds;
  for_each_node(root, [&](const DataNodePtr& node) {
    if (const auto seed = node->drawn_seed()) seeds.push_back(*seed);
  });
  return seeds;
}

DataNodePtr with_agreed_seeds(const DataNodePtr& root, std::span<const uint64_t> seeds) {
  size_t next = 0;
  return rewrite(root, [&](const DataNodePtr& node) {
    return node->drawn_seed() ? node->with_agreed_seed(seeds[next++]) : node;
  });
}

}  // namespace cohort::internal

namespace cohort::data {

Dataset Dataset::shuffle(int64_t buffer_size, ShuffleOptions options) const {
  using Origin = internal::SeedOrigin;
  const internal::ShuffleSeed seed{options.seed ? *options.seed : internal::next_seed(),
                                   options.seed ? Origin::kGiven : Origin::kDrawn,
                                   options.reshuffle_each_iteration};
  return Dataset(std::make_shared<internal::ShuffleNode>(node_, buffer_size, seed), options_);
}

}  // namespace cohort::data
