#include "cohort/parameter_server/store/kept_message.h"

#include <string_view>
#include <utility>

#include "cohort/core/bytes/wire.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/store/message_parts.h"

namespace cohort::internal {
namespace {

enum KeptField : uint32_t {
  kKeptId = 1,
  kKeptEntry,
  kDirectory,
  kProbe,
  kKeptFile,
  kSees,
  kKeptIndex
};
enum ReadField : uint32_t { kReadId = 1, kPrefix, kIndexCrc, kPart, kFound };
enum PartField : uint32_t {
  kPartVariable = 1,
  kPartShard,
  kPartName,
  kPartSliced,
  kPartStart,
  kPartLength,
  kPartNewShard
};
enum KeptPart : uint32_t { kKeptVariable = 1, kKeptShard, kOffset, kSize, kCrc };

}  // namespace

rpc::Message encode(const KeepRequest& request) {
  WireWriter out;
  out.varint(kKeptId, request.id);
  for (const ShardKey& key : request.keys) {
    WireWriter entry;
    entry.varint(kKeptVariable, static_cast<uint64_t>(key.variable))
        .varint(kKeptShard, static_cast<uint64_t>(key.shard));
    out.bytes(kKeptEntry, entry.str());
  }
  return {.control = out.str()};
}

KeepRequest decode_keep(const rpc::Message& message) {
  constexpr char kWhat[] = "what a ps task is to keep";
  KeepRequest request;
  WireReader in(message.control, kWhat);
  while (in.next()) {
    if (in.field() == kKeptId) request.id = in.varint();
    if (in.field() != kKeptEntry) continue;
    ShardKey key;
    WireReader parts(in.bytes(), kWhat);
    while (parts.next()) {
      if (parts.field() == kKeptVariable) key.variable = static_cast<int64_t>(parts.varint());
      if (parts.field() == kKeptShard) key.shard = static_cast<int64_t>(parts.varint());
    }
    request.keys.push_back(key);
  }
  return request;
}

rpc::Message encode(const WriteKeptRequest& request) {
  WireWriter out;
  out.varint(kKeptId, request.id)
      .bytes(kDirectory, request.directory)
      .bytes(kProbe, request.probe)
      .bytes(kKeptFile, request.file);
  return {.control = out.str()};
}

WriteKeptRequest decode_write_kept(const rpc::Message& message) {
  WriteKeptRequest request;
  WireReader in(message.control, "what a ps task is to write");
  while (in.next()) {
    if (in.field() == kKeptId) request.id = in.varint();
    if (in.field() == kDirectory) request.directory = in.bytes();
    if (in.field() == kProbe) request.probe = in.bytes();
    if (in.field() == kKeptFile) request.file = in.bytes();
  }
  return request;
}

rpc::Message encode(const WriteKeptReply& reply) {
  WireWriter out;
  out.varint(kSees, reply.sees_directory);
  for (const WriteKeptReply::Place& place : reply.places) {
    WireWriter entry;
    entry.varint(kOffset, place.offset).varint(kSize, place.size).varint(kCrc, place.crc);
    out.bytes(kKeptEntry, entry.str());
  }
  return {.control = out.str()};
}

WriteKeptReply decode_write_kept_reply(const rpc::Message& message) {
  constexpr char kWhat[] = "what a ps task has written";
  WriteKeptReply reply;
  WireReader in(message.control, kWhat);
  while (in.next()) {
    if (in.field() == kSees) reply.sees_directory = in.varint() != 0;
    if (in.field() != kKeptEntry) continue;
    WriteKeptReply::Place place;
    WireReader parts(in.bytes(), kWhat);
    while (parts.next()) {
      if (parts.field() == kOffset) place.offset = parts.varint();
      if (parts.field() == kSize) place.size = parts.varint();
      if (parts.field() == kCrc) place.crc = static_cast<uint32_t>(parts.varint());
    }
    reply.places.push_back(place);
  }
  return reply;
}

rpc::Message encode(const KeptRequest& request) {
  WireWriter out;
  out.varint(kKeptId, request.id).varint(kKeptIndex, request.index);
  return {.control = out.str()};
}

KeptRequest decode_kept(const rpc::Message& message) {
  KeptRequest request;
  WireReader in(message.control, "which kept values are meant");
  while (in.next()) {
    if (in.field() == kKeptId) request.id = in.varint();
    if (in.field() == kKeptIndex) request.index = in.varint();
  }
  return request;
}

rpc::Message encode(const ReadPartsRequest& request) {
  WireWriter out;
  out.varint(kReadId, request.id)
      .bytes(kPrefix, request.prefix)
      .varint(kIndexCrc, request.index_crc);
  for (const ReadPartsRequest::Part& part : request.parts) {
    WireWriter fields;
    fields.varint(kPartVariable, static_cast<uint64_t>(part.key.variable))
        .varint(kPartShard, static_cast<uint64_t>(part.key.shard))
        .bytes(kPartName, part.name)
        .bytes(kPartNewShard, part.new_shard);
    if (part.slice) {
      fields.varint(kPartSliced, 1);
      for (const int64_t start : part.slice->start) {
        fields.varint(kPartStart, static_cast<uint64_t>(start));
      }
      for (const int64_t length : part.slice->length) {
        fields.varint(kPartLength, static_cast<uint64_t>(length));
      }
    }
    out.bytes(kPart, fields.str());
  }
  return {.control = out.str()};
}

namespace {

ReadPartsRequest::Part decode_part(std::string_view bytes, const char* what) {
  ReadPartsRequest::Part part;
  train::TensorSlice slice;
  bool sliced = false;
  WireReader in(bytes, what);
  while (in.next()) {
    if (in.field() == kPartVariable) part.key.variable = static_cast<int64_t>(in.varint());
    if (in.field() == kPartShard) part.key.shard = static_cast<int64_t>(in.varint());
    if (in.field() == kPartName) part.name = in.bytes();
    if (in.field() == kPartNewShard) part.new_shard = in.bytes();
    if (in.field() == kPartSliced) sliced = in.varint() != 0;
    if (in.field() == kPartStart) slice.start.push_back(static_cast<int64_t>(in.varint()));
    if (in.field() == kPartLength) slice.length.push_back(static_cast<int64_t>(in.varint()));
  }
  if (slice.start.size() != slice.length.size()) {
    throw DataLossError(str(what, ": a slice that is none"));
  }
  if (sliced) part.slice = std::move(slice);
  return part;
}

}  // namespace

ReadPartsRequest decode_read_parts(const rpc::Message& message) {
  constexpr char kWhat[] = "what a ps task is to read";
  ReadPartsRequest request;
  WireReader in(message.control, kWhat);
  while (in.next()) {
    if (in.field() == kReadId) request.id = in.varint();
    if (in.field() == kPrefix) request.prefix = in.bytes();
    if (in.field() == kIndexCrc) request.index_crc = static_cast<uint32_t>(in.varint());
    if (in.field() == kPart) request.parts.push_back(decode_part(in.bytes(), kWhat));
  }
  return request;
}

rpc::Message encode(const ReadPartsReply& reply) {
  WireWriter out;
  out.varint(kFound, reply.found);
  return {.control = out.str()};
}

ReadPartsReply decode_read_parts_reply(const rpc::Message& message) {
  ReadPartsReply reply;
  WireReader in(message.control, "what a ps task has read");
  while (in.next()) {
    if (in.field() == kFound) reply.found = in.varint() != 0;
  }
  return reply;
}

rpc::Message encode(const SendPartRequest& request) {
  WireWriter out;
  out.varint(kReadId, request.id);
  WireWriter fields;
  fields.varint(kPartVariable, static_cast<uint64_t>(request.part.key.variable))
      .varint(kPartShard, static_cast<uint64_t>(request.part.key.shard))
      .bytes(kPartNewShard, request.part.new_shard);
  out.bytes(kPart, fields.str());
  TensorWriter tensors;
  tensors.add(request.part.value);
  return std::move(tensors).message(out);
}

SendPartRequest decode_send_part(const rpc::Message& message) {
  constexpr char kWhat[] = "a restored value";
  StoreMessageReader reader(message, kWhat);
  SendPartRequest request;
  WireReader in = reader.request();
  while (in.next()) {
    if (in.field() == kReadId) request.id = in.varint();
    if (in.field() != kPart) continue;
    const ReadPartsRequest::Part part = decode_part(in.bytes(), kWhat);
    request.part.key = part.key;
    request.part.new_shard = part.new_shard;
  }
  request.part.value = reader.next_tensor();
  return request;
}

}  // namespace cohort::internal
