#include "cohort/parameter_server/store/store_message.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <iterator>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/parameter_server/store/message_parts.h"

namespace cohort::internal {
namespace {

enum CreateField : uint32_t {
  kCreateVariable = 1,
  kCreateShard,
  kCreateName,
  kKnownKind,
  kKnownFirst,
  kKnownSecond,
  kKnownSeed,
  kKnownStream,
  kKnownPosition,
  kKnownSize,  // of each dimension
  kKnownOffset,
  kOwnerVariable,
  kOwnerShard
};

enum EntryField : uint32_t { kEntry = 1 };
enum EntryPart : uint32_t {
  kEntryVariable = 1,
  kEntryShard,
  kEntryVersion,
  kEntryHasValue,
  kEntryName
};
enum LoadField : uint32_t { kLoadNumber = 1, kLoadLargestName, kLoadLargestBytes };

void write_known(const KnownShard& known, WireWriter& out, TensorWriter& tensors) {
  out.varint(kKnownKind, static_cast<uint64_t>(known.values.kind))
      .fixed64(kKnownFirst, as_bits(known.values.first))
      .fixed64(kKnownSecond, as_bits(known.values.second))
      .varint(kKnownSeed, known.values.seed)
      .varint(kKnownStream, known.values.stream)
      .varint(kKnownPosition, known.values.position)
      .varint(kKnownOffset, static_cast<uint64_t>(known.first));
  for (const int64_t size : known.shape) out.varint(kKnownSize, static_cast<uint64_t>(size));
  tensors.add(at::empty({0}, known.dtype));  // names the dtype
}

// Whether the field was one of a known shard's.
bool read_known(WireReader& in, KnownShard& known, const StoreMessageReader& reader) {
  switch (in.field()) {
    case kKnownKind: {
      const uint64_t kind = in.varint();
      if (kind > static_cast<uint64_t>(distribute::KnownValues::Kind::kTruncatedNormal)) {
        reader.fail("has values of an unknown kind");
      }
      known.values.kind = static_cast<distribute::KnownValues::Kind>(kind);
      return true;
    }
    case kKnownFirst:
      known.values.first = as_double(in.fixed64());
      return true;
    case kKnownSecond:
      known.values.second = as_double(in.fixed64());
      return true;
    case kKnownSeed:
      known.values.seed = in.varint();
      return true;
    case kKnownStream:
      known.values.stream = in.varint();
      return true;
    case kKnownPosition:
      known.values.position = in.varint();
      return true;
    case kKnownOffset:
      known.first = static_cast<int64_t>(in.varint());
      return true;
    case kKnownSize:
      known.shape.push_back(static_cast<int64_t>(in.varint()));
      return true;
    default:
      return false;
  }
}

void check_known(const KnownShard& known, const StoreMessageReader& reader) {
  constexpr int64_t kMostBytes = int64_t{1} << 40;
  constexpr size_t kMostDimensions = 64;
  int64_t bytes = static_cast<int64_t>(c10::elementSize(known.dtype));
  bool fits =
      known.first >= 0 && known.first <= kMostBytes && known.shape.size() <= kMostDimensions;
  for (const int64_t size : known.shape) {
    fits = fits && size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes) && bytes <= kMostBytes;
  }
  if (!fits) reader.fail("has a shape that no shard can have");
}

}  // namespace

rpc::Message encode(const CreateRequest& request) {
  WireWriter out;
  out.varint(kCreateVariable, static_cast<uint64_t>(request.key.variable))
      .varint(kCreateShard, static_cast<uint64_t>(request.key.shard))
      .bytes(kCreateName, request.name);
  if (request.owner) {
    out.varint(kOwnerVariable, static_cast<uint64_t>(request.owner->variable))
        .varint(kOwnerShard, static_cast<uint64_t>(request.owner->shard));
  }
  TensorWriter tensors;
  if (request.known) {
    write_known(*request.known, out, tensors);
  } else {
    tensors.add(request.value);
  }
  return std::move(tensors).message(out);
}

CreateRequest decode_create(const rpc::Message& message) {
  StoreMessageReader reader(message, "the creation of a variable");
  CreateRequest request;
  KnownShard known;
  bool is_known = false;
  WireReader in = reader.request();
  while (in.next()) {
    switch (in.field()) {
      case kCreateVariable:
        request.key.variable = static_cast<int64_t>(in.varint());
        break;
      case kCreateShard:
        request.key.shard = static_cast<int64_t>(in.varint());
        break;
      case kCreateName:
        request.name = in.bytes();
        break;
      case kOwnerVariable:
        request.owner.emplace().variable = static_cast<int64_t>(in.varint());
        break;
      case kOwnerShard:
        if (!request.owner) reader.fail("has a shard of no variable");
        request.owner->shard = static_cast<int64_t>(in.varint());
        break;
      default:
        is_known = read_known(in, known, reader) || is_known;
    }
  }
  request.value = reader.next_tensor();
  if (!is_known) return request;
  known.dtype = std::exchange(request.value, Tensor()).scalar_type();
  check_known(known, reader);
  request.known = std::move(known);
  return request;
}

rpc::Message encode(const ReadRequest& request) {
  WireWriter out;
  for (const auto& [key, version] : request.entries) {
    WireWriter entry;
    entry.varint(kEntryVariable, static_cast<uint64_t>(key.variable))
        .varint(kEntryShard, static_cast<uint64_t>(key.shard))
        .varint(kEntryVersion, static_cast<uint64_t>(version));
    out.bytes(kEntry, entry.str());
  }
  return std::move(TensorWriter()).message(out);
}

ReadRequest decode_read(const rpc::Message& message) {
  const StoreMessageReader reader(message, "the reading of variables");
  ReadRequest request;
  WireReader in = reader.request();
  while (in.next()) {
    if (in.field() != kEntry) continue;
    ReadRequest::Entry entry;
    WireReader parts = reader.part(in.bytes());
    while (parts.next()) {
      switch (parts.field()) {
        case kEntryVariable:
          entry.key.variable = static_cast<int64_t>(parts.varint());
          break;
        case kEntryShard:
          entry.key.shard = static_cast<int64_t>(parts.varint());
          break;
        case kEntryVersion:
          entry.known_version = static_cast<int64_t>(parts.varint());
          break;
      }
    }
    request.entries.push_back(entry);
  }
  return request;
}

rpc::Message encode(const ReadReply& reply) {
  WireWriter out;
  TensorWriter tensors;
  for (const auto& [version, tensor] : reply.values) {
    WireWriter entry;
    entry.varint(kEntryVersion, static_cast<uint64_t>(version))
        .varint(kEntryHasValue, tensor.defined());
    out.bytes(kEntry, entry.str());
    if (tensor.defined()) tensors.add(tensor);
  }
  return std::move(tensors).message(out);
}

ReadReply decode_read_reply(const rpc::Message& message) {
  StoreMessageReader reader(message, "the values of variables");
  ReadReply reply;
  WireReader in = reader.request();
  while (in.next()) {
    if (in.field() != kEntry) continue;
    VariableStore::Value value;
    bool has_value = false;
    WireReader parts = reader.part(in.bytes());
    while (parts.next()) {
      if (parts.field() == kEntryVersion) value.version = static_cast<int64_t>(parts.varint());
      if (parts.field() == kEntryHasValue) has_value = parts.varint() != 0;
    }
    if (has_value) value.tensor = reader.next_tensor();
    reply.values.push_back(std::move(value));
  }
  return reply;
}

rpc::Message encode(const RowsRequest& request) {
  WireWriter out;
  TensorWriter tensors;
  for (const auto& [key, indices] : request.entries) {
    WireWriter entry;
    entry.varint(kEntryVariable, static_cast<uint64_t>(key.variable))
        .varint(kEntryShard, static_cast<uint64_t>(key.shard));
    out.bytes(kEntry, entry.str());
    tensors.add(indices);
  }
  return std::move(tensors).message(out);
}

RowsRequest decode_rows(const rpc::Message& message) {
  StoreMessageReader reader(message, "the reading of rows");
  RowsRequest request;
  WireReader in = reader.request();
  while (in.next()) {
    if (in.field() != kEntry) continue;
    RowsRequest::Entry entry;
    WireReader parts = reader.part(in.bytes());
    while (parts.next()) {
      if (parts.field() == kEntryVariable)
        entry.key.variable = static_cast<int64_t>(parts.varint());
      if (parts.field() == kEntryShard) entry.key.shard = static_cast<int64_t>(parts.varint());
    }
    entry.indices = reader.next_tensor();
    request.entries.push_back(std::move(entry));
  }
  return request;
}

rpc::Message encode(const ReleaseRequest& request) {
  WireWriter out;
  for (const auto& [key, name] : request.shards) {
    WireWriter entry;
    entry.varint(kEntryVariable, static_cast<uint64_t>(key.variable))
        .varint(kEntryShard, static_cast<uint64_t>(key.shard))
        .bytes(kEntryName, name);
    out.bytes(kEntry, entry.str());
  }
  return std::move(TensorWriter()).message(out);
}

ReleaseRequest decode_release(const rpc::Message& message) {
  const StoreMessageReader reader(message, "the release of variables");
  ReleaseRequest request;
  WireReader in = reader.request();
  while (in.next()) {
    if (in.field() != kEntry) continue;
    NamedShard shard;
    WireReader parts = reader.part(in.bytes());
    while (parts.next()) {
      switch (parts.field()) {
        case kEntryVariable:
          shard.key.variable = static_cast<int64_t>(parts.varint());
          break;
        case kEntryShard:
          shard.key.shard = static_cast<int64_t>(parts.varint());
          break;
        case kEntryName:
          shard.name = parts.bytes();
          break;
      }
    }
    request.shards.push_back(std::move(shard));
  }
  return request;
}

rpc::Message encode(const VariableStore::Load& load) {
  WireWriter out;
  for (const int64_t number :
       {load.shards, load.bytes, load.operations, load.repeated, load.values_read, load.rows_read,
        load.bytes_read, load.updates, load.staleness, load.refused, load.bytes_received,
        load.bytes_sent}) {
    out.varint(kLoadNumber, static_cast<uint64_t>(number));
  }
  for (const auto& [name, bytes] : load.largest) {
    out.bytes(kLoadLargestName, name).varint(kLoadLargestBytes, static_cast<uint64_t>(bytes));
  }
  return {.control = out.str()};
}

VariableStore::Load decode_load(const rpc::Message& message) {
  VariableStore::Load load;
  int64_t* const numbers[] = {&load.shards,     &load.bytes,          &load.operations,
                              &load.repeated,   &load.values_read,    &load.rows_read,
                              &load.bytes_read, &load.updates,        &load.staleness,
                              &load.refused,    &load.bytes_received, &load.bytes_sent};
  size_t next = 0;
  WireReader in(message.control, "the load of a store");
  while (in.next()) {
    if (in.field() == kLoadLargestName) load.largest.push_back({std::string(in.bytes()), 0});
    if (in.field() == kLoadLargestBytes && !load.largest.empty()) {
      load.largest.back().bytes = static_cast<int64_t>(in.varint());
      continue;
    }
    if (in.field() != kLoadNumber) continue;
    const auto number = static_cast<int64_t>(in.varint());
    if (next < std::size(numbers)) *numbers[next++] = number;
  }
  return load;
}

}  // namespace cohort::internal
