#include "cohort/train/bundle/bundle_entry.h"

#include <utility>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/bundle/ordered_code.h"

namespace cohort::internal {
namespace {

constexpr uint64_t kMostElements = uint64_t{1} << 62;
constexpr size_t kMostDimensions = 254;
constexpr uint64_t kMostShards = 100'000;
constexpr int64_t kWhole = -1;
// The version of the format that is written here, and the newest that is understood.
constexpr uint64_t kVersion = 1;

struct TypeInfo {
  BundleType type;
  uint64_t size;
  const char* name;
};
constexpr TypeInfo kTypes[] = {
    {BundleType::kFloat32, 4, "float32"},
    {BundleType::kFloat64, 8, "float64"},
    {BundleType::kInt32, 4, "int32"},
    {BundleType::kUint8, 1, "uint8"},
    {BundleType::kInt16, 2, "int16"},
    {BundleType::kInt8, 1, "int8"},
    {BundleType::kString, 0, "string"},
    {BundleType::kComplex64, 8, "complex64"},
    {BundleType::kInt64, 8, "int64"},
    {BundleType::kBool, 1, "bool"},
    {BundleType::kBfloat16, 2, "bfloat16"},
    {BundleType::kUint16, 2, "uint16"},
    {BundleType::kComplex128, 16, "complex128"},
    {BundleType::kFloat16, 2, "float16"},
    {BundleType::kUint32, 4, "uint32"},
    {BundleType::kUint64, 8, "uint64"},
};

const TypeInfo* find_type(BundleType type) {
  for (const TypeInfo& info : kTypes) {
    if (info.type == type) return &info;
  }
  return nullptr;
}

// TensorFlow's messages: tensor_shape.proto, tensor_slice.proto and tensor_bundle.proto.
struct DimensionProto {
  int64_t size = 0;
};
void fields(auto& f, DimensionProto& dimension) { f(1, dimension.size); }

struct ShapeProto {
  std::vector<DimensionProto> dimensions = {};
  bool unknown_rank = false;
};
void fields(auto& f, ShapeProto& shape) {
  f(2, shape.dimensions);
  f(3, shape.unknown_rank);
}

struct ExtentProto {
  int64_t start = 0;
  int64_t length = kWhole;
};
void fields(auto& f, ExtentProto& extent) {
  f(1, extent.start);
  f(2, extent.length, kAlways);
}

struct SliceProto {
  std::vector<ExtentProto> extents;
};
void fields(auto& f, SliceProto& slice) { f(1, slice.extents); }

struct EntryProto {
  int32_t type = static_cast<int32_t>(BundleType::kFloat32);
  ShapeProto shape = {};
  uint32_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t crc = 0;
  std::vector<SliceProto> slices = {};
};
void fields(auto& f, EntryProto& entry) {
  f(1, entry.type, kAlways);
  f(2, entry.shape, kAlways);
  f(3, entry.shard);
  f(4, entry.offset);
  f(5, entry.size);
  f(6, entry.crc, kFixed);
  f(7, entry.slices);
}

struct VersionProto {
  uint64_t producer = 0;
  uint64_t min_consumer = 0;
};
void fields(auto& f, VersionProto& version) {
  f(1, version.producer);
  f(2, version.min_consumer);
}

struct HeaderProto {
  uint64_t shards = 0;
  bool big_endian = false;
  VersionProto version = {};
};
void fields(auto& f, HeaderProto& header) {
  f(1, header.shards);
  f(2, header.big_endian);
  f(3, header.version);
}

// The slice in a tensor of this shape, and the key of the entry that has its data.
BundleEntry::Slice resolve_slice(const SliceProto& in, const std::vector<int64_t>& shape,
                                 std::string_view name, const std::string& what) {
  train::TensorSlice slice;
  for (const ExtentProto& extent : in.extents) {
    slice.start.push_back(extent.start);
    slice.length.push_back(extent.length);
  }
  std::string key = slice_key(name, slice);  // as it is written
  bool fits = slice.start.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    if (slice.length[d] == kWhole && slice.start[d] == 0) slice.length[d] = shape[d];
    fits = slice.start[d] >= 0 && slice.length[d] >= 0 && slice.start[d] <= shape[d] &&
           slice.length[d] <= shape[d] - slice.start[d];
  }
  if (!fits) throw DataLossError(str(what, ": a slice lies outside of the tensor"));
  return {std::move(slice), std::move(key)};
}

}  // namespace

uint64_t size_of(BundleType type) {
  const TypeInfo* info = find_type(type);
  return info == nullptr ? 0 : info->size;
}

std::string type_name(BundleType type) {
  const TypeInfo* info = find_type(type);
  return info == nullptr ? str("dtype ", static_cast<int32_t>(type)) : info->name;
}

uint64_t num_elements(const std::vector<int64_t>& shape, const std::string& what) {
  if (shape.size() > kMostDimensions) {
    throw DataLossError(str(what, ": ", shape.size(), " dimensions; at most ", kMostDimensions));
  }
  uint64_t product = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) throw DataLossError(str(what, ": a dimension of ", size));
    if (size == 0) empty = true;
    if (size > 0 && product > kMostElements / static_cast<uint64_t>(size)) {
      throw DataLossError(str(what, ": more elements than there can be"));
    }
    if (size > 0) product *= static_cast<uint64_t>(size);
  }
  return empty ? 0 : product;
}

BundleEntry parse_bundle_entry(std::string_view bytes, std::string_view name,
                               const std::string& what, size_t most_key_bytes) {
  const auto in = decode_fields<EntryProto>(bytes, what);
  if (in.shape.unknown_rank) throw DataLossError(str(what, ", shape: the rank is unknown"));
  if (in.shard >= kMostShards) {
    throw DataLossError(str(what, ": shard ", in.shard, " is out of range"));
  }
  BundleEntry entry{.type = static_cast<BundleType>(in.type),
                    .shape = {},
                    .shard = in.shard,
                    .offset = in.offset,
                    .size = in.size,
                    .crc = in.crc,
                    .slices = {}};
  for (const DimensionProto& dimension : in.shape.dimensions) {
    entry.shape.push_back(dimension.size);
  }
  num_elements(entry.shape, what);
  size_t keys = 0;
  for (const SliceProto& slice : in.slices) {
    entry.slices.push_back(resolve_slice(slice, entry.shape, name, what));
    keys += entry.slices.back().key.size();
    if (keys > most_key_bytes) {
      throw DataLossError(str(what, ": lists slices that the file does not have"));
    }
  }
  return entry;
}

size_t key_bytes(const BundleEntry& entry) {
  size_t bytes = 0;
  for (const BundleEntry::Slice& part : entry.slices) bytes += part.key.size();
  return bytes;
}

std::string format_bundle_entry(const BundleEntry& entry) {
  EntryProto out{.type = static_cast<int32_t>(entry.type),
                 .shard = entry.shard,
                 .offset = entry.offset,
                 .size = entry.size,
                 .crc = entry.crc};
  for (const int64_t size : entry.shape) out.shape.dimensions.push_back({size});
  for (const BundleEntry::Slice& part : entry.slices) {
    SliceProto& slice = out.slices.emplace_back();
    for (size_t d = 0; d < part.slice.start.size(); ++d) {
      slice.extents.push_back({part.slice.start[d], part.slice.length[d]});
    }
  }
  return encode_fields(out);
}

uint32_t parse_bundle_header(std::string_view bytes, const std::string& file) {
  const std::string what = str("'", file, "': header");
  const auto header = decode_fields<HeaderProto>(bytes, what);
  if (header.big_endian) throw UnimplementedError(str(what, ": written on a big-endian machine"));
  if (header.version.min_consumer > kVersion) {
    throw UnimplementedError(str(what, ": needs a reader of version ", header.version.min_consumer,
                                 "; this one is ", kVersion));
  }
  if (header.shards == 0 || header.shards > kMostShards) {
    throw DataLossError(str(what, ": ", header.shards, " data files"));
  }
  return static_cast<uint32_t>(header.shards);
}

std::string format_bundle_header(uint32_t num_shards) {
  return encode_fields(HeaderProto{.shards = num_shards, .version = {.producer = kVersion}});
}

std::string bundle_index_path(std::string_view prefix) { return std::string(prefix) + ".index"; }

std::string bundle_data_path(std::string_view prefix, uint32_t shard, uint32_t num_shards) {
  return str(prefix, ".data-", with_zeros(shard, 5), "-of-", with_zeros(num_shards, 5));
}

}  // namespace cohort::internal
