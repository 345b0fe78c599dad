// A checksum of what a pipeline yields, whatever the order of its elements; bench/peers/checksum.py
// computes the same.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>

namespace bench {

class Checksum {
 public:
  // Adds each row of a batch of integers and strings. A row's sum is that of its numbers (a
  // string's are its bytes, then its length), each times an odd weight of its place; mixed, so that
  // no two rows' errors cancel.
  void add(const cohort::Structure& batch);

  int64_t elements() const { return elements_; }
  uint64_t value() const { return value_; }

 private:
  int64_t elements_ = 0;
  uint64_t value_ = 0;
};

}  // namespace bench
