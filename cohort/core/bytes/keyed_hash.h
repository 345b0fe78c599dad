// A hash of bytes that nobody can foretell who does not know its key, and that never changes.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort::internal {

struct HashKey {
  uint64_t first = 0;
  uint64_t second = 0;
};

// SipHash-2-4 (Aumasson and Bernstein, 2012). The same on every machine, in every version, and in
// TensorFlow (tf.strings.to_hash_bucket_strong is this modulo the number of buckets).
uint64_t keyed_hash64(std::string_view bytes, const HashKey& key);

}  // namespace cohort::internal
