// The tasks that torchrun (python -m torch.distributed.run) starts. torchrun tells a task its
// number, the number of tasks, and where the first one runs, but no other task's address: tasks
// register theirs at a rendezvous.
//
//   torchrun --nnodes 2 --nproc_per_node 2 --no_python ./train
//
//   tf::distribute::cluster_resolver::TorchrunClusterResolver resolver;
//   resolver.rendezvous();   // {"10.0.0.1:29501", rank 3, size 4}
#pragma once

#include <optional>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

struct TorchrunClusterResolverOptions {
  // The port at which the task of rank 0 offers the coordination service, on the host MASTER_ADDR.
  // nullopt: COHORT_RENDEZVOUS_PORT of the environment, else the port after MASTER_PORT. It cannot
  // be MASTER_PORT itself, where torchrun's own agent listens.
  std::optional<int> rendezvous_port = std::nullopt;
  std::string rpc_layer = "grpc";
  // The environment; nothing: the process's.
  std::optional<Variables> variables = std::nullopt;
};

// Every task is a worker, its index the rank. cluster_spec() is empty: the coordination service has
// it once all have registered.
class COHORT_API TorchrunClusterResolver final : public ClusterResolver {
 public:
  // Errors: FailedPrecondition (not started by torchrun); InvalidArgument (variables that say
  // nothing sensible, MASTER_PORT as the rendezvous's).
  explicit TorchrunClusterResolver(const TorchrunClusterResolverOptions& options = {});

  train::ClusterSpec cluster_spec() const override { return {}; }
  using ClusterResolver::master;
  // The rendezvous.
  std::string master() const override;
  std::optional<Rendezvous> rendezvous() const override { return rendezvous_; }
  std::string source() const override { return "torchrun"; }

 private:
  Rendezvous rendezvous_;
};

}  // namespace cohort::distribute::cluster_resolver
