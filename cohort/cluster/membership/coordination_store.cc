// Calls to the store.
#include "cohort/cluster/membership/coordination_core.h"
#include "cohort/cluster/membership/message_body.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {

CoordinationCore::Reply CoordinationCore::use_store(size_t method, const Session& session,
                                                    CallPtr& call, const Gone& gone, Outbox& out) {
  const StoreRequest request = StoreRequest::decode(body_of(call->request()));
  switch (method) {
    case CoordinationMethod::kGet:
      return get(session, request, call, gone);
    case CoordinationMethod::kList:
      return store_.list(request.key, request.after).encode();
    case CoordinationMethod::kSet:
    case CoordinationMethod::kAdd:
    case CoordinationMethod::kCompareAndSet:
    case CoordinationMethod::kRemove:
      return change_store(method, session, request, out);
    default:
      throw UnimplementedError(str("membership has no method ", method));
  }
}

CoordinationCore::Reply CoordinationCore::get(const Session& session, const StoreRequest& request,
                                              CallPtr& call, const Gone& gone) {
  check_name("a key", request.key, kMostKeyBytes);
  if (const std::string* value = store_.get(request.key)) {
    return StoreReply{.done = true, .value = *value, .has_value = true}.encode();
  }
  if (request.at_most == Duration::zero()) return StoreReply{}.encode();
  waiting_.add({.kind = WaitingCall::Kind::kGet,
                .session = session,
                .call = nullptr,
                .until = clock_.now() + request.at_most,
                .request = 0,
                .name = request.key,
                .version = 0,
                .registration = {},
                .gone = gone},
               call);
  return std::nullopt;
}

std::string CoordinationCore::change_store(size_t method, const Session& session,
                                           const StoreRequest& request, Outbox& out) {
  const NumberedRequest number{method, request.id, request.oldest};
  if (const StoreReply* before = answered_.find(session, number)) return before->encode();
  roster_.check_generation(session, request.generation);
  StoreReply reply;
  switch (method) {
    case CoordinationMethod::kAdd:
      reply.number = store_.add(session, request);
      reply.done = true;
      break;
    case CoordinationMethod::kCompareAndSet:
      reply.done = store_.compare_and_set(session, request);
      if (const std::string* value = store_.get(request.key); !reply.done && value != nullptr) {
        reply.value = *value;
        reply.has_value = true;
      }
      break;
    case CoordinationMethod::kRemove:
      reply.done = store_.remove(request.key);
      break;
    default:
      store_.set(session, request);
      reply.done = true;
  }
  // A request that changed nothing may be repeated, and its answer may be large: so only answers
  // about changes are kept.
  if (reply.done) {
    answered_.add(session, number, reply);
    answer_gets(request.key, out);
  }
  return reply.encode();
}

}  // namespace cohort::internal::membership
