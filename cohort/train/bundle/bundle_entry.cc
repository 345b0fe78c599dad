#include "cohort/train/bundle/bundle_entry.h"

#include "cohort/core/bytes/wire.h"
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

void add_dimension(std::vector<int64_t>& shape, int64_t size, const WireReader& place) {
  if (shape.size() == kMostDimensions) place.fail("too many dimensions");
  shape.push_back(size);
}

std::vector<int64_t> parse_shape(std::string_view bytes, const std::string& what) {
  std::vector<int64_t> shape;
  WireReader reader(bytes, what + ", shape");
  while (reader.next()) {
    if (reader.field() == 3 && reader.varint() != 0) reader.fail("the rank is unknown");
    if (reader.field() != 2) continue;
    int64_t size = 0;
    WireReader dimension(reader.bytes(), what + ", shape");
    while (dimension.next()) {
      if (dimension.field() == 1) size = static_cast<int64_t>(dimension.varint());
    }
    add_dimension(shape, size, reader);
  }
  return shape;
}

// The slice as it is written: a dimension without a length has kWhole.
train::TensorSlice parse_slice(std::string_view bytes, const std::string& what) {
  train::TensorSlice slice;
  WireReader reader(bytes, what + ", slice");
  while (reader.next()) {
    if (reader.field() != 1) continue;
    int64_t start = 0;
    int64_t length = kWhole;
    WireReader extent(reader.bytes(), what + ", slice");
    while (extent.next()) {
      if (extent.field() == 1) start = static_cast<int64_t>(extent.varint());
      if (extent.field() == 2) length = static_cast<int64_t>(extent.varint());
    }
    add_dimension(slice.start, start, reader);
    add_dimension(slice.length, length, reader);
  }
  return slice;
}

void resolve_slice(train::TensorSlice& slice, const std::vector<int64_t>& shape,
                   const std::string& what) {
  bool fits = slice.start.size() == shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    if (slice.length[d] == kWhole && slice.start[d] == 0) slice.length[d] = shape[d];
    fits = slice.start[d] >= 0 && slice.length[d] >= 0 && slice.start[d] <= shape[d] &&
           slice.length[d] <= shape[d] - slice.start[d];
  }
  if (!fits) throw DataLossError(str(what, ": a slice lies outside of the tensor"));
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
  BundleEntry entry;
  size_t keys = 0;
  WireReader reader(bytes, what);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        entry.type = static_cast<BundleType>(reader.varint());
        break;
      case 2:
        entry.shape = parse_shape(reader.bytes(), what);
        break;
      case 3: {
        const uint64_t shard = reader.varint();
        if (shard >= kMostShards) reader.fail(str("shard ", shard, " is out of range"));
        entry.shard = static_cast<uint32_t>(shard);
        break;
      }
      case 4:
        entry.offset = reader.varint();
        break;
      case 5:
        entry.size = reader.varint();
        break;
      case 6:
        entry.crc = reader.fixed32();
        break;
      case 7: {
        train::TensorSlice slice = parse_slice(reader.bytes(), what);
        std::string key = slice_key(name, slice);
        keys += key.size();
        if (keys > most_key_bytes) reader.fail("lists slices that the file does not have");
        entry.slices.push_back({std::move(slice), std::move(key)});
        break;
      }
    }
  }
  num_elements(entry.shape, what);
  for (BundleEntry::Slice& part : entry.slices) resolve_slice(part.slice, entry.shape, what);
  return entry;
}

size_t key_bytes(const BundleEntry& entry) {
  size_t bytes = 0;
  for (const BundleEntry::Slice& part : entry.slices) bytes += part.key.size();
  return bytes;
}

std::string format_bundle_entry(const BundleEntry& entry) {
  WireWriter shape;
  for (const int64_t size : entry.shape) {
    // A dimension of 0 is an empty message: proto3 does not write zeros.
    WireWriter dimension;
    if (size != 0) dimension.varint(1, static_cast<uint64_t>(size));
    shape.bytes(2, dimension.str());
  }
  WireWriter out;
  out.varint(1, static_cast<uint64_t>(entry.type)).bytes(2, shape.str());
  if (entry.shard != 0) out.varint(3, entry.shard);
  if (entry.offset != 0) out.varint(4, entry.offset);
  if (entry.size != 0) out.varint(5, entry.size);
  if (entry.crc != 0) out.fixed32(6, entry.crc);
  for (const BundleEntry::Slice& part : entry.slices) {
    WireWriter slice;
    for (size_t d = 0; d < part.slice.start.size(); ++d) {
      WireWriter extent;
      if (part.slice.start[d] != 0) extent.varint(1, static_cast<uint64_t>(part.slice.start[d]));
      extent.varint(2, static_cast<uint64_t>(part.slice.length[d]));
      slice.bytes(1, extent.str());
    }
    out.bytes(7, slice.str());
  }
  return out.str();
}

uint32_t parse_bundle_header(std::string_view bytes, const std::string& file) {
  const std::string what = str("'", file, "': header");
  WireReader reader(bytes, what);
  uint64_t shards = 0;
  while (reader.next()) {
    if (reader.field() == 1) shards = reader.varint();
    if (reader.field() == 2 && reader.varint() != 0) {
      throw UnimplementedError(str(what, ": written on a big-endian machine"));
    }
    if (reader.field() != 3) continue;
    WireReader version(reader.bytes(), what);
    while (version.next()) {
      if (version.field() == 2 && version.varint() > kVersion) {
        throw UnimplementedError(str(what, ": needs a reader of version ", version.varint(),
                                     "; this one is ", kVersion));
      }
    }
  }
  if (shards == 0 || shards > kMostShards) reader.fail(str(shards, " data files"));
  return static_cast<uint32_t>(shards);
}

std::string format_bundle_header(uint32_t num_shards) {
  return WireWriter().varint(1, num_shards).bytes(3, WireWriter().varint(1, kVersion).str()).str();
}

std::string bundle_index_path(std::string_view prefix) { return std::string(prefix) + ".index"; }

std::string bundle_data_path(std::string_view prefix, uint32_t shard, uint32_t num_shards) {
  return str(prefix, ".data-", with_zeros(shard, 5), "-of-", with_zeros(num_shards, 5));
}

}  // namespace cohort::internal
