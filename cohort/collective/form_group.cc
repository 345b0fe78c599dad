#include "cohort/collective/form_group.h"

#include <ATen/Context.h>

#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/coordination.h"
#include "cohort/cluster/server_core.h"
#include "cohort/collective/limited_communicator.h"
#include "cohort/collective/network/group_exchange.h"
#include "cohort/collective/network/rpc_transport.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/sole_communicator.h"
#include "cohort/core/error.h"
#include "cohort/core/logging.h"

namespace cohort::collective {
namespace {

using distribute::experimental::CommunicationImplementation;
using distribute::experimental::CommunicationOptions;
using internal::str;

// The same text on all tasks, or they cannot work together.
std::string text_of(const CommunicationOptions& options) {
  return str("bytes_per_pack ", options.bytes_per_pack, ", timeout ", options.timeout.count(),
             " ms, implementation ", communication_implementation_name(options.implementation));
}

void check_same(const GroupMember& member, const std::vector<std::string>& texts) {
  for (int rank = 1; rank < member.size(); ++rank) {
    const std::string& text = texts[static_cast<size_t>(rank)];
    if (text == texts[0]) continue;
    throw FailedPreconditionError(
        str("tasks differ in their communication options: ", member.task(0), " has ", texts[0],
            "; ", member.task(rank), " has ", text));
  }
}

// Errors: Unavailable (a task of the group is lost, or has left the cluster).
void check_all_there(const GroupMember& member, internal::ServerCore& server) {
  using distribute::TaskStatus;
  for (const distribute::ClusterTask& known : server.coordination().view().tasks) {
    if (known.status != TaskStatus::kLost && known.status != TaskStatus::kLeft) continue;
    for (const TaskId& task : member.tasks) {
      if (task != known.task) continue;
      throw UnavailableError(str(
          task, known.status == TaskStatus::kLost ? " was lost" : " has left",
          " before generation ", member.generation, " of group '", member.group, "' had formed"));
    }
  }
}

void warn_of_nccl(const CommunicationOptions& options) {
  if (options.implementation != CommunicationImplementation::NCCL || at::hasCUDA()) return;
  internal::log_warning("communication implementation NCCL needs GPUs, and this task has none: ",
                        "RING is used");
}

}  // namespace

std::shared_ptr<Communicator> form_group(const GroupMember& member, internal::ServerCore& server,
                                         const CommunicationOptions& options) {
  options.check();
  warn_of_nccl(options);
  if (member.size() == 1) return std::make_shared<SoleCommunicator>(member.generation);
  const std::vector<std::string> texts = exchange_values(member, "options", text_of(options),
                                                         [&] { check_all_there(member, server); });
  check_same(member, texts);
  std::shared_ptr<Communicator> communicator =
      make_transport_communicator(member, make_rpc_transport(member, server));
  internal::log_info("Group '", member.group, "', generation ", member.generation, ", of ",
                     member.size(), " tasks: ", member.task(member.rank), " is rank ", member.rank,
                     "; values travel over the servers' calls");
  if (options.timeout.count() == 0) return communicator;
  return limited(std::move(communicator), options.timeout);
}

}  // namespace cohort::collective
