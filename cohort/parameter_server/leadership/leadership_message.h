// What a coordinator tells the tasks of its cluster about who leads, as messages.
#pragma once

#include <chrono>
#include <cstdint>

#include "cohort/cluster/rpc/message.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"

namespace cohort::internal {

// So long a call of leadership/attend stays open before it is made anew.
inline constexpr std::chrono::seconds kAttendance{60};

// Takes the task over, or (the other methods) says for which coordinator it asks. The answer of
// "take" names the generation that had the task, 0 for none.
struct LeaderClaim {
  int64_t generation = 0;
  SessionId session = 0;  // for a worker
  LeaderOrigin origin = {};
};

// Asks to refuse what `worker` sends in sessions below this one.
struct RefuseWorker {
  int64_t generation = 0;
  int worker = 0;
  SessionId below = 0;
};

// Errors: DataLoss, InvalidArgument (a message that is none of these).
rpc::Message encode(const LeaderClaim& claim);
LeaderClaim decode_leader_claim(const rpc::Message& message);
rpc::Message encode(const RefuseWorker& request);
RefuseWorker decode_refuse_worker(const rpc::Message& message);

}  // namespace cohort::internal
