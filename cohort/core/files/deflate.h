// Compression to gzip and zlib streams.
//
//   Deflater deflater(Compression::kGzip);
//   deflater.deflate(bytes, out);       // appends to `out` what is ready
//   deflater.finish(out);
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/files/compression.h"

namespace cohort::internal {

// Thread safety: none.
class Deflater {
 public:
  // `compression` is not kNone.
  explicit Deflater(Compression compression);
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void deflate(std::string_view in, std::string& out);
  // All that was given can be decompressed from what `out` got; more may follow.
  void flush(std::string& out);
  // Ends the stream; nothing may follow.
  void finish(std::string& out);

 private:
  struct State;
  void run(std::string_view in, std::string& out);

  const std::unique_ptr<State> state_;
};

}  // namespace cohort::internal
