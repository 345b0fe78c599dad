#include "cohort/cluster/membership/answered_requests.h"

#include "cohort/cluster/membership/limits.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {

AnsweredRequests::OfMethod& AnsweredRequests::of(const Session& session, size_t method) {
  OfTask& task = tasks_[session.task];
  if (task.incarnation != session.incarnation) task = {session.incarnation, {}};
  return task.methods[method];
}

const StoreReply* AnsweredRequests::find(const Session& session, const NumberedRequest& request) {
  if (request.id == 0) return nullptr;
  OfMethod& answered = of(session, request.method);
  if (request.oldest > answered.oldest) {
    answered.oldest = request.oldest;
    answered.replies.erase(answered.replies.begin(), answered.replies.lower_bound(request.oldest));
  }
  if (request.id < answered.oldest) {
    throw AbortedError(str("request ", request.id, " of ", session.task,
                           " came late: the task waits only for those from ", answered.oldest));
  }
  if (const auto found = answered.replies.find(request.id); found != answered.replies.end()) {
    return &found->second;
  }
  if (answered.replies.size() >= kMostAnswered) {
    throw ResourceExhaustedError(str(session.task, " may have ", kMostAnswered,
                                     " changes of one kind under way; wait for some of them"));
  }
  return nullptr;
}

void AnsweredRequests::add(const Session& session, const NumberedRequest& request,
                           const StoreReply& reply) {
  if (request.id != 0) of(session, request.method).replies.emplace(request.id, reply);
}

}  // namespace cohort::internal::membership
