// A resolver tells a program which cluster it belongs to, and which of the cluster's tasks it is.
//
//   tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
//   resolver.cluster_spec();   // ClusterSpec({'worker': [...]})
//   resolver.task_type();      // "worker"
//   resolver.task_id();        // 1
//
// A resolver only reads: it opens no socket of its own for other tasks, and accepts what TensorFlow
// accepts. Server and the strategies refuse clusters that cannot run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

// Variables by name, in place of the environment of the process.
using Variables = std::map<std::string, std::string>;

// How tasks find each other if their launcher gives them numbers but no addresses (torchrun,
// mpirun): they bind ports of their own and register them at one address.
struct Rendezvous {
  std::string address;  // "host:port" of the coordination service, in the task of rank 0
  int rank = 0;
  int size = 1;
};

// Thread safety: none.
class COHORT_API ClusterResolver {
 public:
  virtual ~ClusterResolver();

  // The tasks of the cluster. The spec is empty if the program runs alone, or if a rendezvous()
  // will tell. Resolvers that ask a server (Kubernetes, GCE) ask it at each call.
  // Errors of these: as the resolver's own header says; InvalidArgument (a wrong configuration).
  virtual train::ClusterSpec cluster_spec() const = 0;
  // The address of a task's server, with "rpc_layer://" before it where a layer is given, here or
  // as rpc_layer().
  // Errors: InvalidArgument (no such task).
  virtual std::string master(const std::string& task_type, int task_id,
                             const std::string& rpc_layer = "") const;
  // The task that the resolver considers the master: this task's own address if it is known; "" if
  // the program runs alone.
  virtual std::string master() const;

  // Nothing where it is not known.
  virtual std::optional<std::string> task_type() const { return task_type_; }
  virtual std::optional<int> task_id() const { return task_id_; }
  virtual std::string rpc_layer() const { return rpc_layer_; }
  // The kind of place in which the program runs ("cloud"); "" if nobody says.
  virtual std::string environment() const { return ""; }
  virtual std::optional<Rendezvous> rendezvous() const { return std::nullopt; }
  // The accelerators of this task, by kind ("GPU"). nullopt: those that the program finds.
  virtual std::optional<std::map<std::string, int>> num_accelerators() const {
    return std::nullopt;
  }
  // The name of the configuration's source in errors about the cluster: "TF_CONFIG".
  virtual std::string source() const = 0;

  // These replace what the resolver finds.
  void set_task_type(std::string type) { task_type_ = std::move(type); }
  void set_task_id(int id) { task_id_ = id; }
  void set_rpc_layer(std::string layer) { rpc_layer_ = std::move(layer); }

 protected:
  std::optional<std::string> task_type_;
  std::optional<int> task_id_;
  std::string rpc_layer_;
};

}  // namespace cohort::distribute::cluster_resolver
