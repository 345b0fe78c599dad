#include "cohort/collective/forming/form_group.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/collective/forming/hierarchical_communicator.h"
#include "cohort/collective/forming/limited_communicator.h"
#include "cohort/collective/network/group_exchange.h"
#include "cohort/collective/network/networks.h"
#include "cohort/collective/nccl/nccl_communicator.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/shared_memory/layout.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/sole_communicator.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"
#include "cohort/core/host/cgroups.h"
#include "cohort/core/host/cores.h"
#include "cohort/core/host/host_identity.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {
namespace {

using distribute::experimental::CommunicationImplementation;
using distribute::experimental::CommunicationOptions;
using internal::str;
using Clock = std::chrono::steady_clock;

bool is_declared_trusted() {
  const char* const value = std::getenv("COHORT_TRUSTED_NETWORK");
  return value != nullptr && std::string_view(value) == "1";
}

// What a task tells about itself before the group forms.
struct Introduction {
  std::string host;
  std::string options;           // the same on all tasks, or they cannot work together
  std::string cores;             // that it may use: encode_cores
  std::string quota_group = "";  // whose processor time it shares; empty: no quota
  std::string gpu = "";          // empty: it has none
};

std::string text_of(const CommunicationOptions& options) {
  return str("bytes_per_pack ", options.bytes_per_pack, ", timeout ", options.timeout.count(),
             " ms, implementation ", communication_implementation_name(options.implementation),
             options.trusted_network ? ", trusted network" : "");
}

void fields(auto& f, Introduction& introduction) {
  f(1, introduction.host);
  f(2, introduction.options);
  f(3, introduction.cores);
  f(4, introduction.quota_group);
  f(5, introduction.gpu);
}

void check_same(const GroupMember& member, const std::vector<Introduction>& tasks) {
  for (int rank = 1; rank < member.size(); ++rank) {
    const std::string& options = tasks[static_cast<size_t>(rank)].options;
    if (options == tasks[0].options) continue;
    throw FailedPreconditionError(
        str("tasks differ in their communication options: ", member.task(0), " has ",
            tasks[0].options, "; ", member.task(rank), " has ", options));
  }
}

HostRanks hosts_of(const std::vector<Introduction>& tasks) {
  HostRanks hosts;
  std::map<std::string, size_t> known;
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    const auto [host, is_new] = known.try_emplace(tasks[rank].host, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[host->second].push_back(static_cast<int>(rank));
  }
  return hosts;
}

// The task's share of its host's cores, and of `quota` where it has one.
int cores_of(int rank, const std::vector<Introduction>& tasks,
             const std::optional<internal::CpuQuota>& quota) {
  std::vector<cpu_set_t> on_host;
  size_t self = 0;
  int sharers = 0;  // of the quota
  for (size_t other = 0; other < tasks.size(); ++other) {
    if (tasks[other].host != tasks[static_cast<size_t>(rank)].host) continue;
    if (other == static_cast<size_t>(rank)) self = on_host.size();
    on_host.push_back(internal::decode_cores(tasks[other].cores));
    if (quota && tasks[other].quota_group == quota->group) ++sharers;
  }
  return internal::share_of_quota(quota, sharers, internal::share_of_cores(on_host, self));
}

// Whether NCCL is asked for and all tasks have GPUs for it. Warns where one has none.
bool takes_nccl(const GroupMember& member, const CommunicationOptions& options,
                const std::vector<Introduction>& tasks) {
  if (options.implementation != CommunicationImplementation::NCCL) return false;
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    if (!tasks[rank].gpu.empty()) continue;
    const bool is_own = static_cast<int>(rank) == member.rank;
    internal::log_warning("communication implementation NCCL needs GPUs, and ",
                          is_own ? "this task" : to_string(member.task(static_cast<int>(rank))),
                          " has none: RING is used");
    return false;
  }
  return true;
}

std::string gpu_of(const GroupMember& member) { return member.gpu ? member.gpu->str() : ""; }

std::vector<Introduction> introduce(const GroupMember& member, const Introduction& mine) {
  std::vector<Introduction> tasks;
  for (const std::string& value :
       exchange_values(member, "introduction", internal::encode_fields(mine))) {
    tasks.push_back(
        internal::decode_fields<Introduction>(value, "a task's introduction to its group"));
  }
  return tasks;
}

// The key under which a task that fails leaves its error in the store. The others look there while
// they wait for it, and tasks that come later find it.
std::string failure_key(const GroupMember& member) { return member.key("failure"); }

void tell_failure(const GroupMember& member, const std::exception_ptr& error) noexcept {
  try {
    if (member.store->find(failure_key(member))) return;  // the first says why
    const auto reason = given_up(to_string(member.task(member.rank)), error);
    member.store->set(failure_key(member), internal::rpc::encode_error(reason));
  } catch (const std::exception& why) {
    // The store has ended, perhaps, and with it the membership of all.
    internal::log_info("The tasks of group '", member.group, "' do not learn why ",
                       member.task(member.rank), " has failed: ", why.what());
  }
}

void check_nobody_has_failed(const GroupMember& member) {
  const auto error = member.store->find(failure_key(member));
  if (error) std::rethrow_exception(internal::rpc::decode_error(*error));
}

// And says in the log what it is, and why.
std::shared_ptr<Communicator> connect(const GroupMember& member, const HostRanks& hosts,
                                      const Network& network, internal::ServerCore& server) {
  const auto over_network = [&](const GroupMember& part) {
    return make_transport_communicator(part, network.connect(part, server));
  };
  const auto say = [&](const auto&... text) {
    // Rank 0 logs it for all. The lines of the other tasks only help to look for a fault.
    internal::log(member.rank == 0 ? logging::Level::kInfo : logging::Level::kDebug, "Group '",
                  member.group, "', generation ", member.generation, ": ", member.task(member.rank),
                  " is rank ", member.rank, " of ", member.size(), ", ", text...);
  };
  size_t most_on_a_host = 0;
  for (const std::vector<int>& ranks : hosts)
    most_on_a_host = std::max(most_on_a_host, ranks.size());
  if (most_on_a_host == 1) {
    say("each on a host of its own; values travel over ", network.description);
    return over_network(member);
  }
  if (most_on_a_host > size_t{shared_memory::kMostTasks}) {
    say(most_on_a_host, " of them on one host; values travel over ", network.description,
        ", as shared memory serves up to ", shared_memory::kMostTasks, " tasks");
    return over_network(member);
  }
  if (hosts.size() == 1) {
    say("all on one host; values are exchanged in shared memory");
    return make_shared_memory_communicator(member);
  }
  say("on ", hosts.size(), " hosts; values are exchanged in shared memory within a host and over ",
      network.description, " between hosts");
  return make_hierarchical_communicator(member, hosts, make_shared_memory_communicator,
                                        over_network);
}

}  // namespace

FormedGroup form_group_at(const std::string& host, const GroupMember& member,
                          internal::ServerCore& server, const CommunicationOptions& given) {
  CommunicationOptions options = given;
  options.trusted_network = options.trusted_network || is_declared_trusted();
  options.check();
  if (member.size() == 1) {
    takes_nccl(member, options, {{.host = "", .options = "", .cores = "", .gpu = gpu_of(member)}});
    return {std::make_shared<SoleCommunicator>(member.generation)};
  }
  GroupMember watched = member;
  watched.check = [member] {
    member.check();
    check_nobody_has_failed(member);
  };
  try {
    const std::optional<internal::CpuQuota> quota = internal::Cgroups().cpu_quota();
    const std::vector<Introduction> tasks =
        introduce(watched, {.host = host,
                            .options = text_of(options),
                            .cores = internal::encode_cores(internal::own_cores()),
                            .quota_group = quota ? quota->group : "",
                            .gpu = gpu_of(member)});
    check_same(watched, tasks);
    FormedGroup formed{connect(watched, hosts_of(tasks), network_for(options), server),
                       cores_of(member.rank, tasks, quota)};
    if (takes_nccl(member, options, tasks)) {
      formed.communicator = make_nccl_communicator(std::move(formed.communicator), {*member.gpu},
                                                   member.deadline - Clock::now());
      if (member.rank == 0) internal::log_info("Values of GPUs travel by NCCL.");
    }
    if (options.timeout.count() > 0) {
      formed.communicator =
          limited(std::move(formed.communicator), internal::bounded_wait(options.timeout));
    }
    return formed;
  } catch (...) {
    tell_failure(member, std::current_exception());
    throw;
  }
}

FormedGroup form_group(const GroupMember& member, internal::ServerCore& server,
                       const CommunicationOptions& options) {
  return form_group_at(internal::host_identity(), member, server, options);
}

}  // namespace cohort::collective
