#include "cohort/data/nodes/shuffle_order.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>
#include <numeric>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/ops/bulk_draws.h"

namespace cohort::internal {
namespace {

constexpr int64_t kMinCheckpointInterval = 65536;
// More is taken as positions come: what a state says may be more than there is.
constexpr int64_t kMostReserved = int64_t{1} << 20;

// Philox::below for n up to 2^32, from half the random words.
uint64_t below(Philox& random, uint64_t n) {
  uint64_t product = random.next_u32() * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint64_t threshold = (uint64_t{1} << 32) % n;
    while (static_cast<uint32_t>(product) < threshold) product = random.next_u32() * n;
  }
  return product >> 32;
}

// A number below n (at most 2^32) that depends on all bits of `word` (splitmix64's finaliser).
uint64_t random_below(uint64_t word, uint64_t n) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  word ^= word >> 31;
  return ((word >> 32) * n) >> 32;
}
// (value + by) % size, of numbers below size.
uint64_t shifted(uint64_t value, uint64_t by, uint64_t size) {
  value += by;
  return value < size ? value : value - size;
}

[[noreturn]] void fail(const char* what) {
  throw DataLossError(str("iterator state of a shuffle: ", what));
}

[[noreturn]] void fail_beyond(uint64_t position, int64_t size) {
  throw DataLossError(
      str("iterator state of a shuffle: it is at element ", position, " of ", size));
}

}  // namespace

// The square of numbers is as nearly square as can be, so that a round mixes half of the bits.
Permutation::Permutation(int64_t size) : size_(size) {
  if (size <= kListedSize) return;
  rows_ = static_cast<uint64_t>(std::sqrt(static_cast<double>(size)));
  columns_ = (static_cast<uint64_t>(size) + rows_ - 1) / rows_;
}

void Permutation::reset(uint64_t seed, uint64_t epoch) {
  random_ = Philox(seed, epoch);
  order_.clear();
  done_ = 0;
  if (size_ <= kListedSize) return;
  for (uint64_t& key : keys_) key = random_.next_u64();
}

void Permutation::list_until(int64_t end) {
  if (order_.empty()) {
    order_.resize(static_cast<size_t>(size_));
    std::iota(order_.begin(), order_.end(), uint32_t{0});
  }
  for (; done_ < end; ++done_) {
    std::swap(order_[done_], order_[done_ + below(random_, static_cast<uint64_t>(size_ - done_))]);
  }
}

// Each round moves the row by a random function of the column, or the column by one of the row,
// which can be undone: together they permute the square. A place outside of the order is sent
// through again, and again, until it comes out inside.
int64_t Permutation::compute(int64_t index) const {
  auto place = static_cast<uint64_t>(index);
  do {
    uint64_t row = place / columns_, column = place % columns_;
    for (size_t round = 0; round < keys_.size(); round += 2) {
      row = shifted(row, random_below(column ^ keys_[round], rows_), rows_);
      column = shifted(column, random_below(row ^ keys_[round + 1], columns_), columns_);
    }
    place = row * columns_ + column;
  } while (place >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(place);
}

std::span<const int64_t> Permutation::get(int64_t first, int64_t count) {
  if (size_ <= kListedSize) {
    list_until(first + count);
    view_.assign(order_.begin() + first, order_.begin() + first + count);
    return view_;
  }
  view_.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) view_[i] = compute(first + i);
  return view_;
}

ShuffleBuffer::ShuffleBuffer(int64_t capacity)
    : capacity_(capacity),
      checkpoint_interval_(std::max(capacity, kMinCheckpointInterval)),
      checkpoint_(std::make_shared<const std::string>()) {}

void ShuffleBuffer::reset(uint64_t seed, uint64_t epoch) {
  random_ = Philox(seed, epoch);
  slots_.clear();
  next_ = 0;
  checkpoint_ = std::make_shared<const std::string>();
  draws_ = 0;
  failed_.clear();
}

ShuffleBuffer::Draw ShuffleBuffer::draw() {
  if (draws_ >= checkpoint_interval_) take_checkpoint();
  ++draws_;
  const auto slot = static_cast<size_t>(random_.below(slots_.size()));
  const int64_t position = slots_[slot];
  slots_[slot] = slots_.back();
  slots_.pop_back();
  return {slot, position};
}

void ShuffleBuffer::draw_and_push(int64_t count) {
  BulkDraws random(random_);
  int64_t* const slots = slots_.data();
  const size_t size = slots_.size();
  int64_t next = next_;
  int64_t last = slots[size - 1];  // in a register: the last slot is written every time
  for (int64_t i = 0; i < count; ++i) {
    slots[random.below(size)] = last;
    last = next++;
  }
  slots[size - 1] = last;
  next_ = next;
  draws_ += count;
}

void ShuffleBuffer::draw_only(int64_t count) {
  BulkDraws random(random_);
  int64_t* const slots = slots_.data();
  size_t size = slots_.size();
  for (int64_t i = 0; i < count; ++i, --size) slots[random.below(size)] = slots[size - 1];
  slots_.resize(size);
  draws_ += count;
}

// random position, next position, and how far behind it each slot is: all varints.
void ShuffleBuffer::take_checkpoint() {
  std::string bytes;
  append_varint(bytes, random_.position());
  append_varint(bytes, static_cast<uint64_t>(next_));
  for (const int64_t position : slots_) {
    append_varint(bytes, static_cast<uint64_t>(next_ - position));
  }
  checkpoint_ = std::make_shared<const std::string>(std::move(bytes));
  draws_ = 0;
  failed_.clear();
}

void ShuffleBuffer::load_checkpoint(std::string_view bytes, int64_t input_size) {
  if (bytes.empty()) return;
  random_.seek(take_varint(bytes));
  const uint64_t next = take_varint(bytes);
  if (next > static_cast<uint64_t>(input_size)) fail_beyond(next, input_size);
  next_ = static_cast<int64_t>(next);
  slots_.reserve(std::min(bytes.size(), static_cast<size_t>(capacity_)));  // at least a byte each
  while (!bytes.empty()) {
    const uint64_t behind = take_varint(bytes);
    if (behind == 0 || behind > next) fail("a buffered position outside of what was read");
    if (full()) fail("more buffered positions than the buffer holds");
    slots_.push_back(next_ - static_cast<int64_t>(behind));
  }
}

void ShuffleBuffer::save(IteratorState& state) const {
  state.set_int("seed", static_cast<int64_t>(random_.seed()));
  state.set_int("epoch", static_cast<int64_t>(random_.stream()));
  state.set_bytes("checkpoint", checkpoint_);
  state.set_int("draws", draws_);
  state.set_int("next", next_);
  std::string failed;
  for (const int64_t position : failed_) append_varint(failed, static_cast<uint64_t>(position));
  state.set_bytes("failed", std::move(failed));
}

void ShuffleBuffer::restore(const IteratorState& state, int64_t input_size) {
  reset(static_cast<uint64_t>(state.get_int("seed")),
        static_cast<uint64_t>(state.get_int("epoch")));
  const int64_t draws = state.get_int("draws", 0, checkpoint_interval_);
  const int64_t end = state.get_int("next");
  if (end > input_size) fail_beyond(static_cast<uint64_t>(end), input_size);
  checkpoint_ = state.shared_bytes("checkpoint");
  load_checkpoint(*checkpoint_, input_size);
  std::string_view failed_bytes = state.get_bytes("failed");
  while (!failed_bytes.empty()) {
    failed_.push_back(static_cast<int64_t>(take_varint(failed_bytes)));
  }
  // What came in since the checkpoint left by a draw, is in the buffer, or failed.
  int64_t most = next_;
  for (const int64_t part : {draws, std::ssize(failed_), capacity_ - size()}) {
    most += std::min(part, input_size - most);
  }
  if (end < next_ || end > most) fail("it cannot have read as many elements as it says");
  try {
    replay(draws, end);
  } catch (const std::bad_alloc&) {
    throw ResourceExhaustedError(str("iterator state of a shuffle: it is at element ", end,
                                     ", and there is no memory for its buffer of ", capacity_));
  }
}

// Draws again, from the checkpoint on, until `end` elements have come in.
void ShuffleBuffer::replay(int64_t draws, int64_t end) {
  slots_.reserve(static_cast<size_t>(
      std::min(size() + std::min(capacity_ - size(), end - next_), kMostReserved)));
  auto failure = failed_.begin();
  const auto fill = [&] {
    while (!full() && next_ < end) {
      if (failure != failed_.end() && *failure == next_) {
        ++failure;
        ++next_;
      } else {
        push();
      }
    }
  };
  while (draws_ < draws) {
    fill();
    if (empty()) fail("more elements drawn than were read");
    const int64_t stop = failure == failed_.end() ? end : std::min(end, *failure);
    const int64_t left = draws - draws_;
    if (next_ < stop) {
      draw_and_push(std::min(left, stop - next_));
    } else {
      draw_only(next_ == end ? std::min(left, size()) : 1);
    }
  }
  fill();
  if (next_ != end) fail("more elements read than fit into the buffer");
}

}  // namespace cohort::internal
