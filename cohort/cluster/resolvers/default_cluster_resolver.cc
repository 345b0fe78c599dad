#include "cohort/cluster/resolvers/default_cluster_resolver.h"

#include <algorithm>
#include <initializer_list>

#include "cohort/cluster/address.h"
#include "cohort/cluster/resolvers/mpi_cluster_resolver.h"
#include "cohort/cluster/resolvers/process_variables.h"
#include "cohort/cluster/resolvers/slurm_cluster_resolver.h"
#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"
#include "cohort/cluster/resolvers/torchrun_cluster_resolver.h"

namespace cohort::distribute::cluster_resolver {

std::unique_ptr<ClusterResolver> default_cluster_resolver(
    const DefaultClusterResolverOptions& options) {
  const internal::VariableReader variables(options.variables);
  const auto are_set = [&](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](auto name) { return variables.find(name).has_value(); });
  };
  if (!are_set({"TF_CONFIG"})) {
    if (are_set({"RANK", "WORLD_SIZE", "MASTER_ADDR"})) {
      TorchrunClusterResolverOptions torchrun{.variables = options.variables};
      if (!options.rendezvous_address.empty()) {
        torchrun.rendezvous_port = internal::parse_address(options.rendezvous_address).port;
      }
      return std::make_unique<TorchrunClusterResolver>(torchrun);
    }
    const auto mpi = [&] {
      return std::make_unique<MpiClusterResolver>(MpiClusterResolverOptions{
          .rendezvous_address = options.rendezvous_address, .variables = options.variables});
    };
    // mpirun may run within a Slurm step; srun sets PMI_RANK for programs of MPI.
    if (are_set({"OMPI_COMM_WORLD_RANK"})) return mpi();
    if (are_set({"SLURM_PROCID", "SLURM_STEP_ID"})) {
      return std::make_unique<SlurmClusterResolver>(
          SlurmClusterResolverOptions{.variables = options.variables});
    }
    if (are_set({"PMI_RANK", "PMI_SIZE"})) return mpi();
  }
  return std::make_unique<TFConfigClusterResolver>(
      TFConfigClusterResolverOptions{.variables = options.variables});
}

}  // namespace cohort::distribute::cluster_resolver
