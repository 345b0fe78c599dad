// The service "server": tells what a task is, and ends it.
//
//   server/who    anybody: prints task and incarnation, "/job:ps/task:0 1f0c..."
//   server/where  anybody: who answers, which task coordinates the cluster, and where (WhereReply)
//   server/stop   the coordinator of the current generation: ends the task; control: the reason
#pragma once

#include <functional>
#include <memory>

#include "cohort/cluster/server_context.h"

namespace cohort::internal {

std::shared_ptr<rpc::Service> make_control_service(ServerContext& context,
                                                   std::function<TaskId()> coordinator);

}  // namespace cohort::internal
