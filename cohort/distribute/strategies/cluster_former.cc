#include "cohort/distribute/strategies/cluster_former.h"

#include <map>
#include <utility>

#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"

namespace cohort::internal {
namespace {

// The end of a connection is noticed at once, that it was the end of its task a little later: on a
// busy machine much later, and what is silent is lost after the heartbeat's timeout alone.
constexpr std::chrono::seconds kPatienceForTheNews{5};

membership::MembershipAgent& agent_of(const std::shared_ptr<TaskServer>& server) {
  return server->server().core().membership().agent();
}

std::map<TaskId, uint64_t> others_of(const elastic::Record& record, const TaskId& self) {
  std::map<TaskId, uint64_t> others;
  for (const elastic::RecordMember& member : record.members) {
    if (member.task != self) others[member.task] = member.incarnation;
  }
  return others;
}

std::string names_of(const std::vector<TaskId>& tasks) {
  std::string names;
  for (const TaskId& task : tasks) names += str(names.empty() ? "" : ", ", task);
  return names;
}

}  // namespace

ClusterFormer::ClusterFormer(Options options)
    : options_(std::move(options)),
      members_(agent_of(options_.server),
               {.group = {.name = options_.group, .min_tasks = options_.min_workers},
                .log = [](const std::string& line) { log_warning(line); }}) {}

ClusterFormer::Group ClusterFormer::group() const {
  const std::lock_guard lock(mutex_);
  return group_;
}

GroupFormer::Formed ClusterFormer::form(const Standing& mine) {
  const auto start = std::chrono::steady_clock::now();
  Group before = group();
  const std::vector<TaskId> lost = members_.lost();
  while (true) {
    const elastic::Record record =
        members_.form({.step = mine.calls,
                       .reached = mine.reached ? mine.calls + 1 : mine.calls,
                       .program = options_.program,
                       .closed = !mine.admits});
    Formed formed;
    Group now;
    for (size_t rank = 0; rank < record.members.size(); ++rank) {
      formed.calls.push_back(record.members[rank].standing.step);
      now.workers.push_back(record.members[rank].task);
      if (record.members[rank].task == options_.self) now.rank = static_cast<int>(rank);
    }
    try {
      now.connection = GroupConnection{.server = options_.server};
      if (now.workers.size() > 1) {
        auto watch = std::make_shared<GroupWatch>(others_of(record, options_.self),
                                                  agent_of(options_.server).view()->version);
        now.connection = connect_group(options_.server, std::move(watch),
                                       {.name = str(options_.group, "/", record.number),
                                        .generation = record.number,
                                        .tasks = now.workers,
                                        .rank = now.rank,
                                        .timeout = options_.timeout,
                                        .options = options_.communication_options});
      }
    } catch (const UnavailableError&) {
      if (members_.lost().empty()) throw;
      continue;
    }
    formed.communicator = now.connection.communicator;
    formed.cores = now.connection.cores;
    {
      const std::lock_guard lock(mutex_);
      group_ = std::move(now);
    }
    if (before.connection.keys != nullptr) before.connection.keys->remove_all();
    if (!lost.empty()) {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      log_warning("lost ", names_of(lost), "; ", formed.calls.size(), " of ", before.workers.size(),
                  " workers go on after ", took.count(), " s");
    }
    return formed;
  }
}

bool ClusterFormer::has_lost_a_task() {
  const std::shared_ptr<GroupWatch> watch = group().connection.watch;
  return (watch != nullptr && watch->loss(kPatienceForTheNews) != nullptr) || members_.must_form();
}

}  // namespace cohort::internal
