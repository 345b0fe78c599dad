// How the work on a batch is divided.
#pragma once

#include <cstdint>
#include <vector>

namespace cohort::internal::plan {

// Consecutive parts of a whole, of sizes that differ by one at most.
struct Part {
  int64_t first = 0;
  int64_t count = 0;
};
std::vector<Part> divide(int64_t total, int64_t parts);

// Examples that one thread takes through one operation after the other while they are in its cache.
struct Chunk : Part {
  int lane = 0;
};

// The batch in chunks, and the chunks in lanes. A lane is what one thread does, in order; it has
// memory of its own. The division depends on sizes alone, never on how many threads there are, so
// that neither do the bits of a sum.
struct Chunks {
  // widest: the elements of an example's largest value; least: the examples that a chunk should
  // have at least, where there are as many.
  Chunks(int64_t batch, int64_t widest, int64_t least = 1);

  int64_t batch = 0;
  int64_t largest = 0;         // examples
  std::vector<int64_t> sizes;  // the one or two that occur
  std::vector<std::vector<Chunk>> lanes;
};

}  // namespace cohort::internal::plan
