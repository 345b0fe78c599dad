#include "cohort/parameter_server/store/store_message.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <utility>
#include <vector>

#include "cohort/core/bytes/fields.h"
#include "cohort/parameter_server/store/message_parts.h"

namespace cohort::internal {
namespace {

// What is read of one shard: its version, and whether a tensor comes with it.
struct ReadEntry {
  int64_t version = 0;
  bool has_value = false;
};
void fields(auto& f, ReadEntry& entry) {
  f(1, entry.version);
  f(2, entry.has_value);
}

struct ReadFields {
  std::vector<ReadEntry> entries;
};
void fields(auto& f, ReadFields& reply) { f(1, reply.entries); }

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

void fields(auto& f, KnownShard& known) {
  f(1, known.values.kind, distribute::KnownValues::Kind::kTruncatedNormal);
  f(2, known.values.first);
  f(3, known.values.second);
  f(4, known.values.seed);
  f(5, known.values.stream);
  f(6, known.values.position);
  f(7, known.shape);
  f(8, known.first);
}

void fields(auto& f, CreateRequest& request) {
  fields(f, request.key);
  f(3, request.name);
  f(4, request.known);
  f(5, request.owner);
}

void fields(auto& f, ReadRequest::Entry& entry) {
  fields(f, entry.key);
  f(3, entry.known_version);
}
void fields(auto& f, ReadRequest& request) { f(1, request.entries); }

void fields(auto& f, RowsRequest::Entry& entry) { fields(f, entry.key); }
void fields(auto& f, RowsRequest& request) { f(1, request.entries); }

void fields(auto& f, NamedShard& shard) {
  fields(f, shard.key);
  f(3, shard.name);
}
void fields(auto& f, ReleaseRequest& request) { f(1, request.shards); }

void fields(auto& f, VariableStore::Load::Size& size) {
  f(1, size.name);
  f(2, size.bytes);
}
void fields(auto& f, VariableStore::Load& load) {
  f(1, load.shards);
  f(2, load.bytes);
  f(3, load.operations);
  f(4, load.repeated);
  f(5, load.values_read);
  f(6, load.rows_read);
  f(7, load.bytes_read);
  f(8, load.updates);
  f(9, load.staleness);
  f(10, load.refused);
  f(11, load.bytes_received);
  f(12, load.bytes_sent);
  f(13, load.largest);
}

rpc::Message encode(const CreateRequest& request) {
  TensorWriter tensors;
  // A known shard's names the dtype.
  tensors.add(request.known ? at::empty({0}, request.known->dtype) : request.value);
  return std::move(tensors).message(encode_fields(request));
}

CreateRequest decode_create(const rpc::Message& message) {
  StoreMessageReader reader(message, "the creation of a variable");
  auto request = reader.request<CreateRequest>();
  request.value = reader.next_tensor();
  if (!request.known) return request;
  request.known->dtype = std::exchange(request.value, Tensor()).scalar_type();
  check_known(*request.known, reader);
  return request;
}

rpc::Message encode(const ReadRequest& request) {
  return TensorWriter().message(encode_fields(request));
}

ReadRequest decode_read(const rpc::Message& message) {
  return StoreMessageReader(message, "the reading of variables").request<ReadRequest>();
}

rpc::Message encode(const ReadReply& reply) {
  ReadFields out;
  TensorWriter tensors;
  for (const auto& [version, tensor] : reply.values) {
    out.entries.push_back({version, tensor.defined()});
    if (tensor.defined()) tensors.add(tensor);
  }
  return std::move(tensors).message(encode_fields(out));
}

ReadReply decode_read_reply(const rpc::Message& message) {
  StoreMessageReader reader(message, "the values of variables");
  ReadReply reply;
  for (const ReadEntry& entry : reader.request<ReadFields>().entries) {
    reply.values.push_back({entry.version, entry.has_value ? reader.next_tensor() : Tensor()});
  }
  return reply;
}

rpc::Message encode(const RowsRequest& request) {
  TensorWriter tensors;
  for (const RowsRequest::Entry& entry : request.entries) tensors.add(entry.indices);
  return std::move(tensors).message(encode_fields(request));
}

RowsRequest decode_rows(const rpc::Message& message) {
  StoreMessageReader reader(message, "the reading of rows");
  auto request = reader.request<RowsRequest>();
  for (RowsRequest::Entry& entry : request.entries) entry.indices = reader.next_tensor();
  return request;
}

rpc::Message encode(const ReleaseRequest& request) {
  return TensorWriter().message(encode_fields(request));
}

ReleaseRequest decode_release(const rpc::Message& message) {
  return StoreMessageReader(message, "the release of variables").request<ReleaseRequest>();
}

rpc::Message encode(const VariableStore::Load& load) { return {.control = encode_fields(load)}; }

VariableStore::Load decode_load(const rpc::Message& message) {
  return decode_fields<VariableStore::Load>(message.control, "the load of a store");
}

}  // namespace cohort::internal
