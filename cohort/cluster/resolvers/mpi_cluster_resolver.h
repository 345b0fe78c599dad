// The tasks that mpirun (mpiexec) starts: Open MPI, MPICH and its relatives, PMIx. Each task knows
// its own number and the number of tasks, but no other task's address: tasks register theirs at a
// rendezvous. No MPI library is linked, and none is called.
//
//   mpirun -n 3 ./train                                              # one host
//   mpirun -x COHORT_RENDEZVOUS=10.0.0.1:29600 -n 8 --host a,b ./train
//
//   tf::distribute::cluster_resolver::MpiClusterResolver resolver;
//   resolver.rendezvous();   // {"10.0.0.1:29600", rank 3, size 8}
#pragma once

#include <optional>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

struct MpiClusterResolverOptions {
  // "host:port" at which the task of rank 0 offers the coordination service; the same in every
  // task. Empty: COHORT_RENDEZVOUS of the environment. Where that is not set either and all tasks
  // are on one host: 127.0.0.1 with a port from 20000 to 29999 that follows from the name of the
  // run.
  std::string rendezvous_address = "";
  std::string rpc_layer = "grpc";
  // The environment; nothing: the process's.
  std::optional<Variables> variables = std::nullopt;
};

// Every task is a worker, its index the rank. cluster_spec() is empty: the coordination service has
// it once all have registered.
class COHORT_API MpiClusterResolver final : public ClusterResolver {
 public:
  // Errors: FailedPrecondition (not started by mpirun; several hosts and no rendezvous address);
  // InvalidArgument (variables that say nothing sensible).
  explicit MpiClusterResolver(const MpiClusterResolverOptions& options = {});

  train::ClusterSpec cluster_spec() const override { return {}; }
  using ClusterResolver::master;
  // The rendezvous.
  std::string master() const override;
  std::optional<Rendezvous> rendezvous() const override { return rendezvous_; }
  std::string source() const override { return "MPI"; }

 private:
  Rendezvous rendezvous_;
};

}  // namespace cohort::distribute::cluster_resolver
