// The order in which shuffles take elements, in positions alone: what makes their state small.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/data/iteration/state.h"
#include "cohort/ops/philox.h"

namespace cohort::internal {

// A random order of 0 .. size-1, a function of (seed, epoch, size).
//
// Up to kListedSize it is drawn uniformly from all orders (Fisher and Yates), as far as it is read.
// Beyond, a list would take memory and time to make, also where reading begins at its end: each
// position is computed by itself, by a pseudo-random permutation (a Feistel network of six rounds).
class Permutation {
 public:
  static constexpr int64_t kListedSize = int64_t{1} << 16;
  static constexpr int64_t kMaxSize = int64_t{1} << 62;
  explicit Permutation(int64_t size);

  void reset(uint64_t seed, uint64_t epoch);
  // Positions [first, first + count) of the order. The view lives until the next call.
  std::span<const int64_t> get(int64_t first, int64_t count);

 private:
  void list_until(int64_t end);
  int64_t compute(int64_t index) const;

  int64_t size_;
  std::vector<int64_t> view_;

  Philox random_;
  std::vector<uint32_t> order_;  // empty until the first get, and where nothing is listed
  int64_t done_ = 0;

  // The computed order is one of rows * columns, at least size_, of which the rest is left out.
  uint64_t rows_ = 1;
  uint64_t columns_ = 1;
  std::array<uint64_t, 6> keys_{};
};

// A buffer of positions from which the next one is drawn uniformly. The user fills it up, draws,
// fills it up again; elements, where there are any, are kept in a vector of the same slots.
class ShuffleBuffer {
 public:
  explicit ShuffleBuffer(int64_t capacity);

  void reset(uint64_t seed, uint64_t epoch);
  uint64_t seed() const { return random_.seed(); }

  bool full() const { return size() == capacity_; }
  bool empty() const { return slots_.empty(); }
  int64_t room() const { return capacity_ - size(); }
  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  const std::vector<int64_t>& slots() const { return slots_; }
  // The first position that was neither pushed nor passed over.
  int64_t next_position() const { return next_; }

  // Position next_position() comes in, as the last slot.
  void push() { slots_.push_back(next_++); }
  // Its element failed: it is passed over.
  void pass_over() { failed_.push_back(next_++); }

  struct Draw {
    size_t slot;  // the last slot moves here, and there is one slot less
    int64_t position;
  };
  // Not from an empty buffer.
  Draw draw();

  // The state is that of an earlier checkpoint and the number of draws since; restoring draws again
  // that often, at most max(capacity, 65536) times, without reading elements.
  void save(IteratorState& state) const;
  // The input has no more than `input_size` elements: memory is taken for no more positions, nor
  // for more than the buffer holds. Errors: DataLoss; ResourceExhausted (no memory for the buffer).
  void restore(const IteratorState& state, int64_t input_size);

 private:
  // So many draws at once, for restoring: each followed by a push into the full buffer, or by none.
  void draw_and_push(int64_t count);
  void draw_only(int64_t count);
  void take_checkpoint();
  void load_checkpoint(std::string_view bytes, int64_t input_size);
  void replay(int64_t draws, int64_t end);

  int64_t capacity_;
  int64_t checkpoint_interval_;
  Philox random_;
  std::vector<int64_t> slots_;
  int64_t next_ = 0;
  std::shared_ptr<const std::string> checkpoint_;  // empty bytes: the beginning
  int64_t draws_ = 0;                              // since the checkpoint
  std::vector<int64_t> failed_;                    // passed over since the checkpoint
};

}  // namespace cohort::internal
