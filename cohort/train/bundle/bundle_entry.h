// What a checkpoint's index says of one tensor: TensorFlow's BundleEntryProto and
// BundleHeaderProto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/train/bundle/tensor_slice.h"

namespace cohort::internal {

// TensorFlow's numbers of dtypes.
enum class BundleType : int32_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kUint32 = 22,
  kUint64 = 23,
};

// Bytes of an element; 0 for strings and for types that are not listed above.
uint64_t size_of(BundleType type);
// "float32"; "dtype 21" for one that is not listed.
std::string type_name(BundleType type);

// The number of elements of `shape`. Errors: DataLoss (`what`: a negative dimension, more than 2^62
// elements, more than 254 dimensions).
uint64_t num_elements(const std::vector<int64_t>& shape, const std::string& what);

struct BundleEntry {
  struct Slice {
    train::TensorSlice slice;  // lengths resolved
    std::string key;           // of the entry that has its data
  };

  BundleType type = BundleType::kFloat32;
  std::vector<int64_t> shape;
  uint32_t shard = 0;
  uint64_t offset = 0;        // in the data file of the shard
  uint64_t size = 0;          // bytes
  uint32_t crc = 0;           // masked
  std::vector<Slice> slices;  // of a partitioned tensor, which has no data of its own
};

// Errors: DataLoss (malformed, a shape that cannot be, slices outside the shape). `name` is the
// entry's, `what` its place in errors; the keys of its slices, each as long as the name at least,
// have no more than `most_key_bytes` together.
BundleEntry parse_bundle_entry(std::string_view bytes, std::string_view name,
                               const std::string& what, size_t most_key_bytes);
// How many bytes the keys of its slices take.
size_t key_bytes(const BundleEntry& entry);
std::string format_bundle_entry(const BundleEntry& entry);

// The number of data files. Errors: DataLoss (malformed, no or too many files, big-endian),
// Unimplemented (for later readers only).
uint32_t parse_bundle_header(std::string_view bytes, const std::string& file);
std::string format_bundle_header(uint32_t num_shards);

// PREFIX.index; PREFIX.data-00000-of-00001.
std::string bundle_index_path(std::string_view prefix);
std::string bundle_data_path(std::string_view prefix, uint32_t shard, uint32_t num_shards);

}  // namespace cohort::internal
