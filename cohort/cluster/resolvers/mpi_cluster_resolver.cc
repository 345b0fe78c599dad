#include "cohort/cluster/resolvers/mpi_cluster_resolver.h"

#include <cstdint>

#include "cohort/cluster/address.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/master_url.h"
#include "cohort/cluster/resolvers/process_variables.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using internal::str;
using internal::VariableReader;

constexpr char kMpirun[] = "mpirun";
constexpr char kAddressVariable[] = "COHORT_RENDEZVOUS";

// The names that a launcher gives to a task's number and the number of tasks, of all hosts and of
// the task's host.
struct Family {
  const char* rank;
  const char* size;
  const char* local_size;
  const char* run;  // the name of the run, the same in all its tasks; null where it has none
};
constexpr Family kFamilies[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", nullptr},
    // srun --mpi=pmix: PMIx has no size of its own in the environment.
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE", "PMIX_NAMESPACE"},
};

const Family& find_family(const VariableReader& variables) {
  for (const Family& family : kFamilies) {
    if (variables.find(family.rank) && variables.find(family.size)) return family;
  }
  variables.get(kFamilies[0].rank, kMpirun);  // throws, unless the size alone is missing
  variables.get(kFamilies[0].size, kMpirun);
  return kFamilies[0];
}

// The port of a run, below the ports that systems give out by themselves. Two runs of a host seldom
// get the same one; the second then fails to bind and says so.
int port_of_run(const std::string& run) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char c : run) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return 20000 + static_cast<int>(hash % 10000);
}

std::string find_address(const std::string& option, const Family& family,
                         const VariableReader& variables, int size) {
  if (!option.empty()) return option;
  if (auto address = variables.find(kAddressVariable)) return *std::move(address);
  const int local_size = variables.find_number(family.local_size, 1).value_or(0);
  const auto run = family.run == nullptr ? std::nullopt : variables.find(family.run);
  if (local_size != size) {
    throw FailedPreconditionError(str(
        "MPI: mpirun says no address, and not all of the ", size, " tasks are on this host; set ",
        kAddressVariable, "=host:port in the environment of all tasks (mpirun -x), the host being ",
        "that of rank 0"));
  }
  return str("127.0.0.1:", port_of_run(run.value_or("")));
}

}  // namespace

MpiClusterResolver::MpiClusterResolver(const MpiClusterResolverOptions& options) {
  const VariableReader variables(options.variables);
  const Family& family = find_family(variables);
  rendezvous_.rank = variables.get_number(family.rank, 0, kMpirun);
  rendezvous_.size = variables.get_number(family.size, 1, kMpirun);
  if (rendezvous_.rank >= rendezvous_.size) {
    throw InvalidArgumentError(str("MPI: ", family.rank, " is ", rendezvous_.rank, ", and ",
                                   family.size, " ", rendezvous_.size));
  }
  const std::string address =
      find_address(options.rendezvous_address, family, variables, rendezvous_.size);
  try {
    rendezvous_.address = to_string(internal::parse_address(address));
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("MPI: rendezvous address: ", error.what()));
  }
  task_type_ = internal::kWorker;
  task_id_ = rendezvous_.rank;
  rpc_layer_ = options.rpc_layer;
}

std::string MpiClusterResolver::master() const {
  return internal::master_url(rendezvous_.address, rpc_layer_);
}

}  // namespace cohort::distribute::cluster_resolver
