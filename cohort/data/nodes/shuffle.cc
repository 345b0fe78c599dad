#include <algorithm>
#include <map>
#include <span>

#include "cohort/data/dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/graph/rewrite.h"
#include "cohort/data/iteration/stacking.h"
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

enum class SeedOrigin { kGiven, kDrawn, kAgreed };

struct ShuffleSeed {
  uint64_t seed;
  SeedOrigin origin;
  bool reshuffle;
  uint64_t epoch(uint64_t pass) const { return reshuffle ? pass : 0; }
};

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

// Remembers the input's state every so many elements (a segment), as long as an element of that
// segment is in the buffer. To restore, each such segment is entered by its state, what is not in
// the buffer is passed over, and what is is read.
class ElementBufferIterator final : public DataIterator {
 public:
  // `cardinality` is the input's.
  ElementBufferIterator(std::unique_ptr<DataIterator> input, int64_t cardinality, ShuffleSeed seed,
                        int64_t capacity, uint64_t epoch)
      : input_(std::move(input)),
        input_size_(cardinality < 0 ? kMostElements : std::min(cardinality, kMostElements)),
        seed_(seed),
        buffer_(capacity),
        segment_size_(std::max(capacity, kMinSegmentSize)) {
    start(epoch);
  }

  bool next(Structure& out) override {
    while (!ended_ && !buffer_.full()) read_element();
    if (buffer_.empty()) return false;
    const auto [slot, position] = buffer_.draw();
    out = elements_[slot].take();
    if (slot + 1 < elements_.size()) elements_[slot] = std::move(elements_.back());
    elements_.pop_back();
    --segments_.at(position / segment_size_).buffered;
    return true;
  }
  void rewind(uint64_t epoch) override {
    start(epoch);
    input_->rewind(epoch);
  }
  IteratorState save() override {
    IteratorState state;
    buffer_.save(state);
    state.set_int("ended", ended_);
    state.set_child("input", input_->save());
    IteratorState segments;
    for (const auto& [number, segment] : segments_) {
      if (segment.buffered > 0 || number == open_segment()) {
        segments.set_child(str(number), segment.state);
      }
    }
    state.set_child("segments", std::move(segments));
    return state;
  }
  void restore(const IteratorState& state) override;

 private:
  static constexpr int64_t kMinSegmentSize = 64;
  struct Segment {
    std::shared_ptr<const IteratorState> state;  // the input's, before the first element
    int64_t buffered = 0;                        // elements of it that are in the buffer
  };

  // After a restore, a row of a block, which takes a tensor of its own only when it is drawn.
  struct Element {
    Structure value;
    std::shared_ptr<const Structure> block;
    int64_t row = 0;

    Structure take() { return block ? select_row(*block, row) : std::move(value); }
  };

  // Number of the segment that was entered and whose end was not reached; -1 if there is none.
  int64_t open_segment() const {
    const int64_t position = buffer_.next_position();
    return position % segment_size_ == 0 ? -1 : position / segment_size_;
  }
  void start(uint64_t epoch) {
    buffer_.reset(seed_.seed, seed_.epoch(epoch));
    elements_.clear();
    segments_.clear();
    ended_ = false;
  }
  // Reads again what belongs into `slots`: for each, what follows the next of `gaps`.
  void reread(std::span<const size_t> slots, std::span<const int64_t> gaps);
  void read_element() {
    const int64_t position = buffer_.next_position();
    Segment& segment = segments_[position / segment_size_];
    if (!segment.state) {
      segment.state = std::make_shared<const IteratorState>(input_->save());
      std::erase_if(segments_, [&](const auto& entry) {
        return entry.second.buffered == 0 && &entry.second != &segment;
      });
    }
    Element element;
    try {
      ended_ = !input_->next(element.value);
    } catch (...) {
      buffer_.pass_over();
      throw;
    }
    if (ended_) return;
    elements_.push_back(std::move(element));
    buffer_.push();
    ++segment.buffered;
  }

  std::unique_ptr<DataIterator> input_;
  const int64_t input_size_;  // or more, where nobody knows
  ShuffleSeed seed_;
  ShuffleBuffer buffer_;
  std::vector<Element> elements_;  // by slot
  int64_t segment_size_;
  std::map<int64_t, Segment> segments_;  // by number: position / segment_size_
  bool ended_ = false;
};

void ElementBufferIterator::restore(const IteratorState& state) {
  start(0);
  buffer_.restore(state, input_size_);
  seed_.seed = buffer_.seed();
  const std::vector<int64_t>& slots = buffer_.slots();
  std::vector<size_t> by_position(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) by_position[i] = i;
  std::sort(by_position.begin(), by_position.end(),
            [&](size_t a, size_t b) { return slots[a] < slots[b]; });
  elements_.resize(slots.size());
  const IteratorState& segments = state.child("segments");
  std::vector<int64_t> gaps;
  for (size_t i = 0; i < by_position.size(); i += gaps.size()) {
    const int64_t number = slots[by_position[i]] / segment_size_;
    gaps.clear();
    for (int64_t place = number * segment_size_; i + gaps.size() < by_position.size();) {
      const int64_t position = slots[by_position[i + gaps.size()]];
      if (position / segment_size_ != number) break;
      gaps.push_back(position - place);
      place = position + 1;
    }
    Segment& segment = segments_[number];
    segment.state = segments.shared_child(str(number));
    segment.buffered = std::ssize(gaps);
    input_->restore(*segment.state);
    reread(std::span(by_position).subspan(i, gaps.size()), gaps);
  }
  if (const int64_t number = open_segment(); number >= 0) {
    segments_[number].state = segments.shared_child(str(number));
  }
  input_->restore(state.child("input"));
  ended_ = state.get_int("ended", 0, 1) == 1;
}

void ElementBufferIterator::reread(std::span<const size_t> slots, std::span<const int64_t> gaps) {
  while (!slots.empty()) {
    size_t count = 0;
    if (input_->has_blocks()) {
      const auto block = std::make_shared<Structure>();
      const auto some = gaps.first(std::min<size_t>(gaps.size(), kMinSegmentSize));
      count = static_cast<size_t>(input_->pick_block(some, *block));
      for (size_t row = 0; row < count; ++row) {
        elements_[slots[row]] = {{}, block, static_cast<int64_t>(row)};
      }
    } else {
      input_->skip(gaps[0]);
      count = input_->next(elements_[slots[0]].value) ? 1 : 0;
    }
    if (count == 0) {
      throw DataLossError(str("shuffle: element ", buffer_.slots()[slots[0]],
                              " was in the buffer, but the input ends before it now"));
    }
    slots = slots.subspan(count);
    gaps = gaps.subspan(count);
  }
}

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
  DataNodePtr with_agreed_seed(uint64_t seed) const {
    return std::make_shared<ShuffleNode>(inputs()[0], buffer_size_,
                                         ShuffleSeed{seed, SeedOrigin::kAgreed, seed_.reshuffle});
  }
  const ShuffleSeed& seed() const { return seed_; }
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
    return std::make_unique<ElementBufferIterator>(input().make_iterator(context.keeping_order()),
                                                   input().cardinality(), seed_, buffer_size_,
                                                   context.epoch);
  }
  bool passes_file_sharding() const override { return true; }
  ShardingRole sharding_role() const override { return ShardingRole::kShuffle; }
  int64_t batch_size() const override { return input().batch_size(); }

 private:
  int64_t buffer_size_;
  ShuffleSeed seed_;
};

// nullptr: another node, or one whose seed was given or agreed on.
const ShuffleNode* with_drawn_seed(const DataNode& node) {
  const auto* const shuffle = dynamic_cast<const ShuffleNode*>(&node);
  return shuffle != nullptr && shuffle->seed().origin == SeedOrigin::kDrawn ? shuffle : nullptr;
}

}  // namespace

std::vector<uint64_t> drawn_seeds(const DataNodePtr& root) {
  std::vector<uint64_t> seeds;
  for_each_node(root, [&](const DataNodePtr& node) {
    if (const ShuffleNode* shuffle = with_drawn_seed(*node)) seeds.push_back(shuffle->seed().seed);
  });
  return seeds;
}

DataNodePtr with_agreed_seeds(const DataNodePtr& root, std::span<const uint64_t> seeds) {
  size_t next = 0;
  return rewrite(root, [&](const DataNodePtr& node) {
    const ShuffleNode* shuffle = with_drawn_seed(*node);
    return shuffle == nullptr ? node : shuffle->with_agreed_seed(seeds[next++]);
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
