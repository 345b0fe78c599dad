#include "cohort/cluster/membership/store_messages.h"

#include <algorithm>

#include "cohort/cluster/membership/limits.h"
#include "cohort/core/bytes/fields.h"

namespace cohort::internal::membership {
namespace {

constexpr AtMostBytes kValue{"a value", kMostValueBytes};
// Longer ones than the store takes, whose answer says so.
constexpr AtMostBytes kAnyKey{"a key", 16 * kMostKeyBytes};

}  // namespace

void fields(auto& f, BarrierRequest& request) {
  f(1, request.id);
  f(2, request.name);
  f(3, request.tasks, AtMost{"tasks", kMostTasks});
  f(4, request.generation);
  f(5, request.at_most);
  f(6, request.oldest);
}

void fields(auto& f, StoreRequest& request) {
  f(1, request.id);
  f(2, request.key, kAnyKey);
  f(3, request.value, kValue);
  f(4, request.expected, kValue);
  f(5, request.delta);
  f(6, request.session);
  f(7, request.generation);
  f(8, request.at_most);
  f(9, request.after, kAnyKey);
  f(10, request.oldest);
}

void fields(auto& f, StoreReply& reply) {
  f(1, reply.done);
  f(2, reply.value, kValue);
  f(3, reply.number);
  f(4, reply.keys, AtMost{"keys", kMostListed}, AtMostText{"a key", kMostKeyBytes});
  f(5, reply.more);
  f(6, reply.has_value);
}

std::string BarrierRequest::encode() const { return encode_fields(*this); }
BarrierRequest BarrierRequest::decode(std::string_view bytes) {
  auto request = decode_fields<BarrierRequest>(bytes, "an arrival at a barrier");
  check_name("a barrier's name", request.name, kMostKeyBytes);
  request.at_most = bounded(request.at_most);
  std::sort(request.tasks.begin(), request.tasks.end());
  request.tasks.erase(std::unique(request.tasks.begin(), request.tasks.end()), request.tasks.end());
  return request;
}

std::string StoreRequest::encode() const { return encode_fields(*this); }
StoreRequest StoreRequest::decode(std::string_view bytes) {
  auto request = decode_fields<StoreRequest>(bytes, "a call to the store");
  request.at_most = bounded(request.at_most);
  return request;
}

std::string StoreReply::encode() const { return encode_fields(*this); }
StoreReply StoreReply::decode(std::string_view bytes) {
  return decode_fields<StoreReply>(bytes, "the store's answer");
}

}  // namespace cohort::internal::membership
