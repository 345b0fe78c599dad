// A hash of bytes that never changes: TensorFlow's for buckets of strings.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort::internal {

// FarmHash's Fingerprint64. The same on every machine, in every version, and in TensorFlow
// (tf.strings.to_hash_bucket_fast is this modulo the number of buckets).
uint64_t fingerprint64(std::string_view bytes);

}  // namespace cohort::internal
