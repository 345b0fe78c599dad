// Random numbers of a seed, the same ones on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace models {

class Draws {
 public:
  explicit Draws(uint64_t seed) : bits_(seed) {}

  // In [0, limit).
  int64_t below(int64_t limit) {
    return static_cast<int64_t>(bits_() % static_cast<uint64_t>(limit));
  }
  // In [low, high], both included.
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  // In [0, 1).
  float uniform() { return static_cast<float>(bits_() >> 40) * 0x1p-24F; }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (int64_t i = static_cast<int64_t>(values.size()) - 1; i > 0; --i) {
      std::swap(values[static_cast<size_t>(i)], values[static_cast<size_t>(below(i + 1))]);
    }
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace models
