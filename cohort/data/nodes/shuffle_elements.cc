#include "cohort/data/nodes/shuffle_elements.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text_stream.h"
#include "cohort/data/iteration/blocks.h"
#include "cohort/data/iteration/stacking.h"
#include "cohort/data/nodes/shuffle_order.h"
#include "cohort/data/nodes/shuffle_records.h"

namespace cohort::internal {
namespace {

// Remembers the input's state every so many elements (a segment), as long as an element of that
// segment is in the buffer. To restore, each such segment is entered by its state, what is not in
// the buffer is passed over, and what is is read.
class ElementBufferIterator final : public DataIterator {
 public:
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
    if (holds_ == Holds::kRecords) {
      if (next_block(1, out) == 0) return false;
      out = select_row(out, 0);
      return true;
    }
    holds_ = Holds::kElements;
    while (!ended_ && !buffer_.full()) read_element();
    if (buffer_.empty()) return false;
    const size_t slot = draw();
    out = elements_[slot].take();
    if (slot + 1 < elements_.size()) elements_[slot] = std::move(elements_.back());
    elements_.pop_back();
    return true;
  }
  bool has_blocks() const override { return input_->has_runs(); }
  int64_t next_block(int64_t n, Structure& out) override;
  int64_t skip(int64_t n) override {
    if (holds_ == Holds::kNothing && has_blocks()) hold_records();
    return holds_ == Holds::kRecords ? skip_records(n) : DataIterator::skip(n);
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
  // The first call decides what the buffer holds: elements, or records as columns where blocks are
  // asked for.
  enum class Holds { kNothing, kElements, kRecords };

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
    records_.clear();
    holds_ = Holds::kNothing;
    segments_.clear();
    ended_ = false;
  }
  size_t draw() {
    const auto [slot, position] = buffer_.draw();
    --segments_.at(position / segment_size_).buffered;
    return slot;
  }
  // The segment of the element that is read next.
  Segment& enter_segment() {
    Segment& segment = segments_[buffer_.next_position() / segment_size_];
    if (!segment.state) {
      segment.state = std::make_shared<const IteratorState>(input_->save());
      std::erase_if(segments_, [&](const auto& entry) {
        return entry.second.buffered == 0 && &entry.second != &segment;
      });
    }
    return segment;
  }
  // Reads again what belongs into `slots`: for each, what follows the next of `gaps`.
  void reread(std::span<const size_t> slots, std::span<const int64_t> gaps);
  void read_element() {
    Segment& segment = enter_segment();
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
  // Moves the elements that a restore has read into columns.
  void hold_records();
  // The next records that come together, `n` at most; 0 at the end of the input.
  int64_t read_records(int64_t n, Structure& block);
  // Puts `count` records of a block into the buffer. Draws `wanted` records at most, while the
  // buffer is full or the input has ended, and returns their number.
  int64_t exchange_records(const Structure& block, int64_t count, int64_t wanted);
  int64_t skip_records(int64_t n);

  std::unique_ptr<DataIterator> input_;
  const int64_t input_size_;  // or more, where nobody knows
  ShuffleSeed seed_;
  ShuffleBuffer buffer_;
  Holds holds_ = Holds::kNothing;
  std::vector<Element> elements_;  // by slot
  ShuffledRecords records_;        // instead of them
  std::vector<RecordStep> steps_;
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

void ElementBufferIterator::hold_records() {
  for (size_t slot = 0; slot < elements_.size(); ++slot) {
    const auto& [value, block, row] = elements_[slot];
    records_.place({&slot, 1}, elements_.size(), slice_rows(*block, row, row + 1));
  }
  elements_.clear();
  holds_ = Holds::kRecords;
}

int64_t ElementBufferIterator::read_records(int64_t n, Structure& block) {
  Segment& segment = enter_segment();
  const int64_t left = segment_size_ - buffer_.next_position() % segment_size_;
  int64_t count = 0;
  try {
    count = input_->next_run(std::min(n, left), block);
  } catch (...) {
    buffer_.pass_over();
    throw;
  }
  ended_ = count == 0;
  segment.buffered += count;
  return count;
}

int64_t ElementBufferIterator::exchange_records(const Structure& block, int64_t count,
                                                int64_t wanted) {
  steps_.clear();
  int64_t drawn = 0;
  const auto draw_one = [&] {
    steps_.push_back(static_cast<RecordStep>(draw()));
    ++drawn;
  };
  for (int64_t i = 0; i < count; ++i) {
    if (buffer_.full()) draw_one();
    buffer_.push();
    steps_.push_back(kPushRecord);
  }
  while (drawn < wanted && !buffer_.empty() && (buffer_.full() || ended_)) draw_one();
  records_.run(steps_, block);
  return drawn;
}

// Reads and draws in the order in which `n` calls of next() do.
int64_t ElementBufferIterator::next_block(int64_t n, Structure& out) {
  if (holds_ == Holds::kElements) {
    std::vector<Structure> elements;
    collect(*this, n, elements);
    if (!elements.empty()) out = stack_elements(elements, Positions::run(0, std::ssize(elements)));
    return std::ssize(elements);
  }
  if (holds_ == Holds::kNothing) hold_records();
  int64_t drawn = 0;
  while (drawn < n && !(ended_ && buffer_.empty())) {
    Structure block;
    int64_t count = 0;
    // Before each draw but the next one, a record takes the place of the one before.
    constexpr int64_t kMany = int64_t{1} << 40;  // more than is read at once
    const int64_t wanted = buffer_.room() + std::min(n - drawn, kMany) - 1;
    try {
      if (!ended_ && wanted > 0) count = read_records(wanted, block);
    } catch (const std::exception&) {
      records_.forget_out();
      skip_records(n - drawn - 1);
      throw;
    }
    drawn += exchange_records(block, count, n - drawn);
  }
  if (drawn > 0) out = records_.take_out();
  return drawn;
}

int64_t ElementBufferIterator::skip_records(int64_t n) {
  constexpr int64_t kAtOnce = 1024;
  Structure scratch;
  int64_t skipped = 0;
  while (skipped < n) {
    const int64_t most = std::min(n - skipped, kAtOnce);
    try {
      const int64_t count = next_block(most, scratch);
      if (count == 0) break;
      skipped += count;
    } catch (const std::exception&) {
      skipped += most;  // elements that nobody wants may fail
    }
  }
  return skipped;
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

}  // namespace

std::unique_ptr<DataIterator> make_shuffled_elements(std::unique_ptr<DataIterator> input,
                                                     int64_t cardinality, ShuffleSeed seed,
                                                     int64_t capacity, uint64_t epoch) {
  return std::make_unique<ElementBufferIterator>(std::move(input), cardinality, seed, capacity,
                                                 epoch);
}

}  // namespace cohort::internal
