// How much memory a call takes: what `new` has given out and not taken back, at its highest.
//
//   PeakMemory memory;
//   parse(bytes);
//   require(memory.peak_bytes() <= bytes.size() + kFreeBytes, "...");
//
// A program that links this has its own operators new and delete, or, under AddressSanitizer, which
// has its own, hooks in all that allocates. Thread safety: none; one at a time.
#pragma once

#include <cstdint>

namespace cohort::fuzz {

class PeakMemory {
 public:
  PeakMemory();
  // Since the construction, beyond what there was then.
  int64_t peak_bytes() const;

 private:
  int64_t at_start_;
};

}  // namespace cohort::fuzz
