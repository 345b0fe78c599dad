// Checks whether a cluster can run. Resolvers accept what TensorFlow accepts; Server and the
// strategies make this check before they open a socket, so that a wrong configuration is one line
// and not a wait for peers that never come.
//
//   check_cluster(spec, TaskId{"worker", 1}, {.source = "TF_CONFIG"});
//   // InvalidArgument: TF_CONFIG: cluster.worker[1]: '10.0.0.2:0' has the port '0'; ...
#pragma once

#include <optional>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

struct ClusterCheckOptions {
  std::string source = "ClusterSpec";  // what errors begin with: where the cluster was read
  bool may_be_empty = false;           // no task at all: the program trains alone
};

// Checks that every address is valid (address.h), that it is not 0.0.0.0 if others must reach it,
// and that no two are the same; that jobs are chief, worker, ps and evaluator, and not empty, with
// at most one chief and one evaluator; that indices have no holes; that `self` is known and in the
// cluster (an evaluator need not be).
// Errors: InvalidArgument, on one line: the source, the JSON path, what is wrong there, what to do.
void check_cluster(const train::ClusterSpec& spec, const std::optional<TaskId>& self,
                   const ClusterCheckOptions& options = {});

// A task and the cluster that it is in, both checked.
struct CheckedCluster {
  train::ClusterSpec spec;     // empty where the program runs alone, or has a rendezvous only
  std::optional<TaskId> self;  // nothing where the program runs alone
};

// Does the same for what a resolver says. A resolver with a rendezvous and no spec yet is right.
// Errors: as above; those of the resolver.
CheckedCluster check_cluster(const distribute::cluster_resolver::ClusterResolver& resolver,
                             bool may_be_empty = false);

}  // namespace cohort::internal
