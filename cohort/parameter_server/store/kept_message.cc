#include "cohort/parameter_server/store/kept_message.h"

#include <utility>

#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/parameter_server/store/message_parts.h"

namespace cohort::internal {

void fields(auto& f, KeepRequest& request) {
  f(1, request.id);
  f(2, request.keys);
}

void fields(auto& f, WriteKeptRequest& request) {
  f(1, request.id);
  f(2, request.directory);
  f(3, request.probe);
  f(4, request.file);
}

void fields(auto& f, WriteKeptReply::Place& place) {
  f(1, place.offset);
  f(2, place.size);
  f(3, place.crc);
}

void fields(auto& f, WriteKeptReply& reply) {
  f(1, reply.sees_directory);
  f(2, reply.places);
}

void fields(auto& f, KeptRequest& request) {
  f(1, request.id);
  f(2, request.index);
}

void fields(auto& f, train::TensorSlice& slice) {
  f(1, slice.start);
  f(2, slice.length);
}

void fields(auto& f, ReadPartsRequest::Part& part) {
  fields(f, part.key);
  f(3, part.name);
  f(4, part.slice);
  f(5, part.new_shard);
}

void fields(auto& f, ReadPartsRequest& request) {
  f(1, request.id);
  f(2, request.prefix);
  f(3, request.index_crc);
  f(4, request.parts);
}

void fields(auto& f, ReadPartsReply& reply) { f(1, reply.found); }

void fields(auto& f, SendPartRequest& request) {
  fields(f, request.part.key);
  f(3, request.part.new_shard);
  f(4, request.id);
}

rpc::Message encode(const KeepRequest& request) { return {.control = encode_fields(request)}; }
KeepRequest decode_keep(const rpc::Message& message) {
  return decode_fields<KeepRequest>(message.control, "what a ps task is to keep");
}

rpc::Message encode(const WriteKeptRequest& request) { return {.control = encode_fields(request)}; }
WriteKeptRequest decode_write_kept(const rpc::Message& message) {
  return decode_fields<WriteKeptRequest>(message.control, "what a ps task is to write");
}

rpc::Message encode(const WriteKeptReply& reply) { return {.control = encode_fields(reply)}; }
WriteKeptReply decode_write_kept_reply(const rpc::Message& message) {
  return decode_fields<WriteKeptReply>(message.control, "what a ps task has written");
}

rpc::Message encode(const KeptRequest& request) { return {.control = encode_fields(request)}; }
KeptRequest decode_kept(const rpc::Message& message) {
  return decode_fields<KeptRequest>(message.control, "which kept values are meant");
}

rpc::Message encode(const ReadPartsRequest& request) { return {.control = encode_fields(request)}; }
ReadPartsRequest decode_read_parts(const rpc::Message& message) {
  constexpr char kWhat[] = "what a ps task is to read";
  auto request = decode_fields<ReadPartsRequest>(message.control, kWhat);
  for (const ReadPartsRequest::Part& part : request.parts) {
    if (part.slice && part.slice->start.size() != part.slice->length.size()) {
      throw DataLossError(str(kWhat, ": a slice that is none"));
    }
  }
  return request;
}

rpc::Message encode(const ReadPartsReply& reply) { return {.control = encode_fields(reply)}; }
ReadPartsReply decode_read_parts_reply(const rpc::Message& message) {
  return decode_fields<ReadPartsReply>(message.control, "what a ps task has read");
}

rpc::Message encode(const SendPartRequest& request) {
  TensorWriter tensors;
  tensors.add(request.part.value);
  return std::move(tensors).message(encode_fields(request));
}
SendPartRequest decode_send_part(const rpc::Message& message) {
  StoreMessageReader reader(message, "a restored value");
  auto request = reader.request<SendPartRequest>();
  request.part.value = reader.next_tensor();
  return request;
}

}  // namespace cohort::internal
