// The resolver for the launcher that has started this program, so that one program runs unchanged
// under all of them.
//
//   auto resolver = tf::distribute::cluster_resolver::default_cluster_resolver();
//   std::cout << resolver->source();   // "torchrun"
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

struct DefaultClusterResolverOptions {
  // "host:port" for launchers that give no addresses; for torchrun only the port counts. Empty: the
  // one that the launcher's resolver chooses.
  std::string rendezvous_address = "";
  // The environment; nothing: the process's.
  std::optional<Variables> variables = std::nullopt;
};

// The first of these whose variables are set: TF_CONFIG; torchrun (RANK, WORLD_SIZE, MASTER_ADDR);
// Open MPI's mpirun (OMPI_COMM_WORLD_RANK); a Slurm step (SLURM_PROCID, SLURM_STEP_ID); other
// mpirun (PMI_RANK, PMI_SIZE). Without any, a TFConfigClusterResolver: the program is alone.
// Kubernetes and GCE are never guessed: they ask a server, and need to be told for what.
// Errors: those of the resolver.
COHORT_API std::unique_ptr<ClusterResolver> default_cluster_resolver(
    const DefaultClusterResolverOptions& options = {});

}  // namespace cohort::distribute::cluster_resolver
