// A hash of bytes that never changes: TensorFlow's for buckets of strings.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort::internal {

// FarmHash's Fingerprint64. The same on every machine, in every version, and in TensorFlow
// (tf.strings.to_hash_bucket_fast is this modulo the number of buckets).
uint64_t fingerprint64(std::string_view bytes);

// The fingerprint of two things, in this order, of theirs. Also TensorFlow's: crosses of features
// are made with it.
uint64_t joined_fingerprint64(uint64_t first, uint64_t second);

}  // namespace cohort::internal
