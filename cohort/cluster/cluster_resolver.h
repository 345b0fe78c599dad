// Where a program learns which cluster it belongs to and which of its tasks it is.
//
//   tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
//   resolver.cluster_spec();   // {'worker': [...]}
//   resolver.task_type();      // "worker"
//   resolver.task_id();        // 1
//
// A resolver only reads: it opens no socket of its own for other tasks, and accepts what TensorFlow
// accepts. Server and the strategies refuse clusters that cannot run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

// What a launcher knows that gives its tasks numbers but no addresses (torchrun, mpirun): tasks find
// each other at one address, bind ports of their own and register them there.
struct Rendezvous {
  std::string address;  // "host:port" of the coordination service, in the task of rank 0
  int rank = 0;
  int size = 1;
};

// Thread safety: none.
class COHORT_API ClusterResolver {
 public:
  virtual ~ClusterResolver();

  // Empty where the program runs alone, or where a rendezvous() will tell.
  // Errors of these: as the resolver's own header says; InvalidArgument (a wrong configuration).
  virtual train::ClusterSpec cluster_spec() const = 0;
  // The address of a task's server, with "rpc_layer://" before it where a layer is given; without
  // arguments, what the resolver considers the master.
  virtual std::string master(const std::string& task_type, int task_id,
                             const std::string& rpc_layer = "") const = 0;
  virtual std::string master() const = 0;

  // Nothing where it is not known.
  virtual std::optional<std::string> task_type() const = 0;
  virtual std::optional<int> task_id() const = 0;
  virtual std::string rpc_layer() const { return ""; }
  virtual std::string environment() const { return ""; }
  virtual std::optional<Rendezvous> rendezvous() const { return std::nullopt; }
};

}  // namespace cohort::distribute::cluster_resolver
