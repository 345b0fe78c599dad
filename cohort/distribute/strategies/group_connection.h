// The connection of a task to the others of its group, by the servers of a cluster.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/collective/communication_options.h"
#include "cohort/collective/communicator.h"
#include "cohort/collective/own_keys.h"
#include "cohort/core/program/task_id.h"
#include "cohort/distribute/tasks/group_watch.h"
#include "cohort/distribute/tasks/task_server.h"

namespace cohort::internal {

struct GroupConnection {
  std::shared_ptr<TaskServer> server = nullptr;
  std::shared_ptr<GroupWatch> watch = nullptr;                       // null in a group of one
  std::shared_ptr<collective::OwnKeys> keys = nullptr;               // by which it formed
  std::shared_ptr<collective::Communicator> communicator = nullptr;  // null in a group of one
  int cores = 0;  // of this task, see FormedGroup
};

// Whom to connect.
struct GroupToConnect {
  std::string name;  // another one for each group that forms
  int64_t generation = 0;
  std::vector<TaskId> tasks;  // in the order of ranks
  int rank = 0;
  std::chrono::nanoseconds timeout;
  distribute::experimental::CommunicationOptions options;
  std::optional<c10::Device> gpu = {};  // see GroupMember
};

// COLLECTIVE over the tasks. watch: of the others. Errors: those of form_group; the error of the
// task that is lost meanwhile.
GroupConnection connect_group(std::shared_ptr<TaskServer> server, std::shared_ptr<GroupWatch> watch,
                              const GroupToConnect& group);

}  // namespace cohort::internal
