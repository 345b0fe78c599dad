#include "cohort/cluster/resolvers/slurm_cluster_resolver.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "cohort/cluster/config_error.h"
#include "cohort/cluster/resolvers/process_variables.h"
#include "cohort/cluster/resolvers/slurm_gpus.h"
#include "cohort/cluster/resolvers/slurm_lists.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using internal::quoted;
using internal::str;
using internal::VariableReader;

constexpr char kSrun[] = "srun";

constexpr int kFirstPort = 8888;
constexpr int kPortsOfAStep = 64;
constexpr int kSteps = 359;  // prime; the last port lies below those that Linux gives to callers
constexpr int kPlaceOfAStep =
    97;  // jobs have numbers that follow, their steps lie far from the next job's

// The hosts of the step, each with how many tasks it runs.
struct Layout {
  std::vector<std::string> hosts;
  std::vector<int> counts;
  bool cyclic = false;  // ranks go round the hosts, and do not fill one after the other
};

// The host of a rank, and its number among the tasks of that host.
struct Slot {
  int host = 0;
  int local_index = 0;
};

struct Rank {
  int rank = 0;
  int size = 1;
  bool of_slurm = true;
};

// The variable of the step, else that of the job.
std::string step_or_job(const VariableReader& variables, const std::string& step,
                        const std::string& job) {
  if (auto value = variables.find(step)) return *std::move(value);
  if (auto value = variables.find(job)) return *std::move(value);
  return variables.get(step, kSrun);
}

Rank find_rank(const VariableReader& variables) {
  Rank found;
  if (const auto rank = variables.find_number("OMPI_COMM_WORLD_RANK", 0)) {
    found = {.rank = *rank,
             .size = variables.get_number("OMPI_COMM_WORLD_SIZE", 1, "mpirun"),
             .of_slurm = false};
  } else {
    found.rank = variables.get_number("SLURM_PROCID", 0, kSrun);
    const auto of_step = variables.find_number("SLURM_STEP_NUM_TASKS", 1);
    found.size = of_step ? *of_step : variables.get_number("SLURM_NTASKS", 1, kSrun);
  }
  if (found.rank >= found.size) {
    throw InvalidArgumentError(
        str("Slurm: this is rank ", found.rank, " of ", found.size, " tasks"));
  }
  return found;
}

std::vector<int> find_counts(const VariableReader& variables, size_t hosts, int tasks,
                             const std::optional<int>& per_node) {
  if (per_node) {
    if (*per_node < 1) throw InvalidArgumentError(str("Slurm: tasks_per_node is ", *per_node));
    return std::vector<int>(hosts, *per_node);
  }
  for (const char* name :
       {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"}) {
    const std::optional<std::string> text = variables.find(name);
    if (!text) continue;
    std::vector<int> counts = internal::expand_counts(*text);
    // SLURM_NTASKS_PER_NODE is one number for all.
    if (counts.size() == 1) counts.assign(hosts, counts.front());
    if (counts.size() == hosts) return counts;
    throw InvalidArgumentError(str("Slurm: ", name, ": ", quoted(*text), " is for ", counts.size(),
                                   " hosts, the nodelist has ", hosts));
  }
  // The tasks are divided evenly over the hosts, rounded up, as srun does it.
  const int even = (tasks + static_cast<int>(hosts) - 1) / static_cast<int>(hosts);
  return std::vector<int>(hosts, even);
}

Layout find_layout(const VariableReader& variables, int tasks, const std::optional<int>& per_node) {
  Layout layout;
  layout.hosts = internal::expand_nodelist(
      step_or_job(variables, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"));
  layout.counts = find_counts(variables, layout.hosts.size(), tasks, per_node);
  const auto places = std::accumulate(layout.counts.begin(), layout.counts.end(), int64_t{0});
  if (places < tasks) {
    throw FailedPreconditionError(str("Slurm: ", tasks, " tasks do not fit ", layout.hosts.size(),
                                      " hosts with ", places, " tasks together"));
  }
  layout.cyclic = variables.find("SLURM_DISTRIBUTION").value_or("").starts_with("cyclic");
  return layout;
}

// The slot of each rank, in the order of ranks. The hosts have enough slots for all ranks, and
// perhaps many more.
std::vector<Slot> place_ranks(const Layout& layout, int tasks) {
  std::vector<Slot> slots;
  const int hosts = static_cast<int>(layout.hosts.size());
  const auto is_left = [&] { return static_cast<int>(slots.size()) < tasks; };
  if (layout.cyclic) {
    for (int local = 0; is_left(); ++local) {
      for (int host = 0; host < hosts && is_left(); ++host) {
        if (local < layout.counts[static_cast<size_t>(host)]) slots.push_back({host, local});
      }
    }
  } else {
    for (int host = 0; host < hosts; ++host) {
      const int count = layout.counts[static_cast<size_t>(host)];
      for (int local = 0; local < count && is_left(); ++local) slots.push_back({host, local});
    }
  }
  return slots;
}

// A task that listened at another host's address would never be found.
void check_slot(const Slot& slot, int rank, const VariableReader& variables) {
  const auto node = variables.find_number("SLURM_NODEID", 0);
  const auto local = variables.find_number("SLURM_LOCALID", 0);
  if (!node || !local || (*node == slot.host && *local == slot.local_index)) return;
  throw FailedPreconditionError(str("Slurm: rank ", rank, " is task ", *local, " of host ", *node,
                                    "; by the environment's ", "lists it would be task ",
                                    slot.local_index, " of host ", slot.host,
                                    "; start the step with srun --distribution=block"));
}

// The number of a job or a step, of up to 32 bits; 0 if it has none, as the batch script's step.
int64_t number_or_zero(const VariableReader& variables, const std::string& name) {
  return internal::parse_number<int64_t>(variables.find(name).value_or("")).value_or(0);
}

// The first port, which is the same on all tasks. mpirun starts the tasks of other hosts by a step
// of its own, so that the step does not count if mpirun has given the rank.
int find_port_base(const VariableReader& variables, bool of_slurm) {
  if (const auto base = variables.find_number("COHORT_PORT_BASE", 1)) return *base;
  const auto job = static_cast<uint32_t>(number_or_zero(variables, "SLURM_JOB_ID"));
  const auto step =
      static_cast<uint32_t>(of_slurm ? number_or_zero(variables, "SLURM_STEP_ID") : 0);
  const uint64_t place = (job + uint64_t{step} * kPlaceOfAStep) % kSteps;
  return kFirstPort + static_cast<int>(place) * kPortsOfAStep;
}

std::vector<std::string> make_addresses(const Layout& layout, const std::vector<Slot>& slots,
                                        int port_base) {
  std::map<std::string, int64_t> next_port;  // a host may be in the list twice
  std::vector<int64_t> first_port;
  for (size_t host = 0; host < layout.hosts.size(); ++host) {
    const auto entry = next_port.try_emplace(layout.hosts[host], port_base).first;
    first_port.push_back(entry->second);
    entry->second += layout.counts[host];
  }
  std::vector<std::string> addresses;
  for (const Slot& slot : slots) {
    const int64_t port = first_port[static_cast<size_t>(slot.host)] + slot.local_index;
    if (port < 1 || port > 65535) {
      throw InvalidArgumentError(str("Slurm: port_base ", port_base, " gives a task the port ",
                                     port, "; ports are 1 to 65535"));
    }
    addresses.push_back(str(layout.hosts[static_cast<size_t>(slot.host)], ":", port));
  }
  return addresses;
}

void check_jobs(const std::map<std::string, int>& jobs, int tasks) {
  int64_t wanted = 0;
  for (const auto& [job, count] : jobs) {
    if (count < 0)
      throw InvalidArgumentError(str("Slurm: job ", quoted(job), " has ", count, " tasks"));
    wanted += count;
  }
  if (wanted != tasks) {
    throw FailedPreconditionError(str("Slurm: `jobs` has ", wanted, " tasks, and the step ", tasks,
                                      "; they must be as many"));
  }
}

}  // namespace

SlurmClusterResolver::SlurmClusterResolver(const SlurmClusterResolverOptions& options) {
  const VariableReader variables(options.variables);
  const Rank self = find_rank(variables);
  std::map<std::string, int> jobs = options.jobs;
  if (jobs.empty()) jobs["worker"] = self.size;
  check_jobs(jobs, self.size);
  const Layout layout = find_layout(variables, self.size, options.tasks_per_node);
  const std::vector<Slot> slots = place_ranks(layout, self.size);
  const Slot& own = slots[static_cast<size_t>(self.rank)];
  if (self.of_slurm) check_slot(own, self.rank, variables);
  const int port_base =
      options.port_base ? *options.port_base : find_port_base(variables, self.of_slurm);
  const std::vector<std::string> addresses = make_addresses(layout, slots, port_base);

  train::ClusterSpec::Jobs spec;
  int rank = 0;
  for (const auto& [job, count] : jobs) {
    for (int index = 0; index < count; ++index, ++rank) {
      spec[job][index] = addresses[static_cast<size_t>(rank)];
      if (rank != self.rank) continue;
      task_type_ = job;
      task_id_ = index;
    }
  }
  cluster_ = train::ClusterSpec(std::move(spec));
  rpc_layer_ = options.rpc_layer;

  const internal::GpuShare gpus =
      internal::share_gpus({.per_node = options.gpus_per_node,
                            .per_task = options.gpus_per_task,
                            .tasks_on_host = layout.counts[static_cast<size_t>(own.host)],
                            .local_index = own.local_index},
                           variables);
  gpus_per_task_ = gpus.count;
  cuda_visible_devices_ = gpus.visible.value_or(
      gpus.count > 0 ? variables.find("CUDA_VISIBLE_DEVICES").value_or("") : "");
  if (options.auto_set_gpu && !options.variables && gpus.visible) {
    setenv("CUDA_VISIBLE_DEVICES", gpus.visible->c_str(), 1);
  }
}

std::optional<std::map<std::string, int>> SlurmClusterResolver::num_accelerators() const {
  if (gpus_per_task_ == 0) return std::nullopt;
  return std::map<std::string, int>{{"GPU", gpus_per_task_}};
}

}  // namespace cohort::distribute::cluster_resolver
