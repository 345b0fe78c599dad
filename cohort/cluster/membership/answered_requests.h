// Keeps the answers of the coordination service, so that a repeated request changes nothing twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "cohort/cluster/membership/store.h"
#include "cohort/cluster/membership/store_messages.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::membership {

struct NumberedRequest {
  size_t method = 0;
  uint64_t id = 0;      // 0: it is not repeated
  uint64_t oldest = 0;  // see StoreRequest
};

// Answers are kept until their task says that it has them. Thread safety: none.
class AnsweredRequests {
 public:
  // The answer to an earlier attempt, nullptr if there was none; valid until the next call.
  // Errors: Aborted (the task waits for no answer to this request any more: the attempt was on its
  // way for long), ResourceExhausted (too many answers are kept for the task).
  const StoreReply* find(const Session& session, const NumberedRequest& request);
  void add(const Session& session, const NumberedRequest& request, const StoreReply& reply);

 private:
  struct OfMethod {
    uint64_t oldest = 0;
    std::map<uint64_t, StoreReply> replies;
  };
  struct OfTask {
    uint64_t incarnation = 0;
    std::map<size_t, OfMethod> methods;
  };

  OfMethod& of(const Session& session, size_t method);

  std::map<TaskId, OfTask> tasks_;
};

}  // namespace cohort::internal::membership
