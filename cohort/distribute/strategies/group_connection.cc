#include "cohort/distribute/strategies/group_connection.h"

#include <utility>

#include "cohort/cluster/server_core.h"
#include "cohort/collective/forming/form_group.h"
#include "cohort/core/error.h"

namespace cohort::internal {

GroupConnection connect_group(std::shared_ptr<TaskServer> server, std::shared_ptr<GroupWatch> watch,
                              const GroupToConnect& group) {
  GroupConnection connection{.server = std::move(server), .watch = std::move(watch)};
  ServerCore& core = connection.server->server().core();
  core.membership().listen(connection.watch);
  if (const auto now = core.membership().agent().view()) connection.watch->on_view(*now);
  connection.keys =
      std::make_shared<collective::OwnKeys>(collective::make_cluster_store(core.coordination()));
  const collective::GroupMember member{.group = group.name,
                                       .generation = group.generation,
                                       .rank = group.rank,
                                       .tasks = group.tasks,
                                       .store = connection.keys,
                                       .deadline = std::chrono::steady_clock::now() + group.timeout,
                                       .check = [watch = connection.watch] { watch->check(); },
                                       .gpu = group.gpu};
  try {
    collective::FormedGroup formed = collective::form_group(member, core, group.options);
    connection.communicator = std::move(formed.communicator);
    connection.cores = formed.cores;
  } catch (const UnavailableError&) {
    if (const std::exception_ptr loss = connection.watch->loss(std::chrono::milliseconds(500))) {
      std::rethrow_exception(loss);
    }
    throw;
  }
  connection.watch->guard(connection.communicator);
  return connection;
}

}  // namespace cohort::internal
