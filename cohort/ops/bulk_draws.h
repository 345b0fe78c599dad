// What Philox::below gives, from words that are made many at a time: for loops of draws.
//
//   {
//     BulkDraws draws(random);
//     for (uint64_t& value : values) value = draws.below(n);
//   }                                                        // here `random` stands after them
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cohort/ops/philox.h"

namespace cohort::internal {

// While it lives `random`, which must live as long, stands somewhere ahead.
class BulkDraws {
 public:
  explicit BulkDraws(Philox& random) : random_(random) {}
  ~BulkDraws() { random_.seek(position()); }
  BulkDraws(const BulkDraws&) = delete;
  BulkDraws& operator=(const BulkDraws&) = delete;

  uint64_t below(uint64_t n) {
    if (used_ == words_.size()) {
      random_.fill(words_);
      used_ = 0;
    }
    const uint64_t word = words_[used_] | uint64_t{words_[used_ + 1]} << 32;
    const auto product = static_cast<uint128_t>(word) * n;
    if (static_cast<uint64_t>(product) < n) return below_itself(n);  // it may refuse the word
    used_ += 2;
    return static_cast<uint64_t>(product >> 64);
  }

 private:
  __extension__ typedef unsigned __int128 uint128_t;

  uint64_t position() const { return random_.position() - (words_.size() - used_); }
  uint64_t below_itself(uint64_t n) {
    random_.seek(position());
    used_ = words_.size();
    return random_.below(n);
  }

  Philox& random_;
  std::array<uint32_t, 512> words_;
  size_t used_ = words_.size();
};

}  // namespace cohort::internal
