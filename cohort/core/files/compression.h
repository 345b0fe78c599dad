// The compressions of data files, both deflate: gzip's wrapper and zlib's.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort::internal {

enum class Compression : uint8_t { kNone, kGzip, kZlib };

// Deflate's shortest code for its longest match, 258 bytes from 2 bits: no byte of a compressed
// file stands for more bytes than these.
inline constexpr uint64_t kMaxDeflateRatio = 1032;

// The compression of this name: "", "GZIP" or "ZLIB", as TensorFlow names them.
// Errors: InvalidArgument (another name).
Compression compression_of(std::string_view name);
// The name of the compression, as compression_of takes it.
std::string_view compression_name(Compression compression);

}  // namespace cohort::internal
