// Random numbers of a simulation: the same for the same seed, on every machine.
#pragma once

#include <chrono>
#include <cstdint>

namespace cohort::internal::membership {

// splitmix64. Thread safety: none.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
  }
  // 0 to count - 1.
  uint64_t below(uint64_t count) { return next() % count; }
  bool one_in(uint64_t count) { return below(count) == 0; }
  std::chrono::nanoseconds between(std::chrono::nanoseconds low, std::chrono::nanoseconds high) {
    return low + std::chrono::nanoseconds(
                     static_cast<int64_t>(below(static_cast<uint64_t>((high - low).count()) + 1)));
  }

 private:
  uint64_t state_;
};

}  // namespace cohort::internal::membership
