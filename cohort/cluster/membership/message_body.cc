#include "cohort/cluster/membership/message_body.h"

#include <memory>
#include <utility>

namespace cohort::internal::membership {
namespace {

// Below every method's limit of control bytes (rpc::MethodSpec).
constexpr size_t kMostInControl = size_t{32} << 10;

}  // namespace

rpc::Message to_message(std::string bytes) {
  if (bytes.size() <= kMostInControl) return {.control = std::move(bytes), .bulk = {}};
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {.control = "", .bulk = {{owner, owner->data(), owner->size()}}};
}

std::string_view body_of(const rpc::Message& message) {
  if (message.bulk.empty()) return message.control;
  return {message.bulk.front().data, message.bulk.front().size};
}

rpc::CallResult with_body(rpc::CallResult result) {
  if (!result.error && !result.reply.bulk.empty()) {
    result.reply.control = std::string(body_of(result.reply));
    result.reply.bulk.clear();
  }
  return result;
}

}  // namespace cohort::internal::membership
