// Decompression of gzip and zlib streams, piece by piece: what goes in and what comes out may be
// cut anywhere.
//
//   Inflater inflater(Compression::kGzip);
//   const auto step = inflater.inflate(bytes, out);
//   if (step.problem) fail(step.problem);
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "cohort/core/files/compression.h"

struct inflate_state;  // of ISA-L

namespace cohort::internal {

// Thread safety: none.
class Inflater {
 public:
  struct Step {
    size_t read = 0;     // bytes taken off the front of the input
    size_t written = 0;  // bytes put at the front of the output
    // What is wrong with the input, or null. Afterwards only reset() may be called.
    const char* problem = nullptr;
  };

  // `compression` is not kNone.
  explicit Inflater(Compression compression);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Goes on until the input is used up, the output is full or the stream ends.
  Step inflate(std::string_view in, std::span<char> out);
  // Whether the stream's end was seen, where its checksum and length held.
  bool ended() const;
  // Whether nothing of a stream was read yet.
  bool fresh() const { return fresh_; }
  // Another stream begins.
  void reset();

 private:
  const Compression compression_;
  const std::unique_ptr<inflate_state> state_;  // 86 KB
  bool fresh_ = true;
};

}  // namespace cohort::internal
