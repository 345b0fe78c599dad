// The cluster of a Slurm step: one task for each that srun started.
//
//   srun -n 3 ./train      # 2 hosts, "2,1" tasks on them
//
//   tf::distribute::cluster_resolver::SlurmClusterResolver resolver(
//       {.jobs = {{"ps", 1}, {"worker", 2}}, .port_base = 8888});
//   resolver.cluster_spec();  // ClusterSpec({'ps': ['n1:8888'], 'worker': ['n1:8889', 'n2:8888']})
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

struct SlurmClusterResolverOptions {
  // Tasks by job; ranks go to jobs in alphabetical order. Empty: all are workers.
  std::map<std::string, int> jobs = {};
  // A host's tasks listen at this port and those that follow. Nothing: COHORT_PORT_BASE of the
  // environment, else a port that follows from the numbers of Slurm's job and step, so that two
  // jobs on a host do not meet (8888 to 31863); 8888 where there is no such number.
  std::optional<int> port_base = std::nullopt;
  // Nothing: what CUDA_VISIBLE_DEVICES or SLURM_GPUS_ON_NODE says, else the GPUs of this host.
  std::optional<int> gpus_per_node = std::nullopt;
  // Nothing: an equal part of its host's for each task.
  std::optional<int> gpus_per_task = std::nullopt;
  // The same on each host. Nothing: what Slurm says.
  std::optional<int> tasks_per_node = std::nullopt;
  // Sets CUDA_VISIBLE_DEVICES of the process to this task's GPUs, where there are any. Not where
  // `variables` stand for the environment.
  bool auto_set_gpu = true;
  std::string rpc_layer = "grpc";
  // The environment; nothing: the process's.
  std::optional<Variables> variables = std::nullopt;
};

// Reads the environment once, when it is made: before other threads run, since it may set
// CUDA_VISIBLE_DEVICES. Ranks lie on hosts as Slurm's block and cyclic distributions put them;
// hosts are in Slurm's order. Outside of a step the job's own variables count (SLURM_NTASKS and so
// on). A rank that mpirun gave within Slurm goes before Slurm's.
class COHORT_API SlurmClusterResolver final : public ClusterResolver {
 public:
  // Errors: FailedPrecondition (no Slurm, jobs that are not as many tasks as the step's, more GPUs
  // than a host has, ranks that lie otherwise); InvalidArgument (variables that say nothing
  // sensible).
  explicit SlurmClusterResolver(const SlurmClusterResolverOptions& options = {});

  train::ClusterSpec cluster_spec() const override { return cluster_; }
  std::string source() const override { return "Slurm"; }
  std::optional<std::map<std::string, int>> num_accelerators() const override;
  // This task's: "2,3"; "" where it has none.
  const std::string& cuda_visible_devices() const { return cuda_visible_devices_; }

 private:
  train::ClusterSpec cluster_;
  int gpus_per_task_ = 0;
  std::string cuda_visible_devices_;
};

}  // namespace cohort::distribute::cluster_resolver
