// Where a program learns which cluster it belongs to and which of its tasks it is.
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

  // Empty where the program runs alone, or where a rendezvous() will tell. Resolvers that ask a server
  // (Kubernetes, GCE) ask it at each call.
  // Errors of these: as the resolver's own header says; InvalidArgument (a wrong configuration).
  virtual train::ClusterSpec cluster_spec() const = 0;
  // The address of a task's server, with "rpc_layer://" before it where a layer is given, here or as
  // rpc_layer().
  // Errors: InvalidArgument (no such task).
  virtual std::string master(const std::string& task_type, int task_id,
                             const std::string& rpc_layer = "") const;
  // What the resolver considers the master: this task's own address where it is known; "" where the
  // program runs alone.
  virtual std::string master() const;

  // Nothing where it is not known.
  virtual std::optional<std::string> task_type() const { return task_type_; }
  virtual std::optional<int> task_id() const { return task_id_; }
  virtual std::string rpc_layer() const { return rpc_layer_; }
  // What kind of place the program runs in ("cloud"), where somebody says so.
  virtual std::string environment() const { return ""; }
  virtual std::optional<Rendezvous> rendezvous() const { return std::nullopt; }
  // Of this task, by kind ("GPU"). Nothing: those that the program finds.
  virtual std::optional<std::map<std::string, int>> num_accelerators() const {
    return std::nullopt;
  }
  // Where it reads, as errors about the cluster name it: "TF_CONFIG".
  virtual std::string source() const = 0;

  // For who knows better.
  void set_task_type(std::string type) { task_type_ = std::move(type); }
  void set_task_id(int id) { task_id_ = id; }
  void set_rpc_layer(std::string layer) { rpc_layer_ = std::move(layer); }

 protected:
  std::optional<std::string> task_type_;
  std::optional<int> task_id_;
  std::string rpc_layer_;
};

}  // namespace cohort::distribute::cluster_resolver
