// The cluster that the environment variable TF_CONFIG describes, as Kubeflow, Vertex AI, `cohort
// launch` and people by hand set it.
//
//   TF_CONFIG='{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},
//               "task": {"type": "worker", "index": 1}}'
//
//   tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
//   resolver.task_id();   // 1
#pragma once

#include <optional>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

struct TFConfigClusterResolverOptions {
  // Each of these replaces what TF_CONFIG says.
  std::optional<std::string> task_type = std::nullopt;
  std::optional<int> task_id = std::nullopt;
  std::optional<std::string> rpc_layer = std::nullopt;
  std::optional<std::string> environment = std::nullopt;
  // The environment; nothing: the process's.
  std::optional<Variables> variables = std::nullopt;
};

// Reads once, when it is made. Without TF_CONFIG there is no cluster: cluster_spec() is empty,
// master() "", task_type() and task_id() nothing.
class COHORT_API TFConfigClusterResolver final : public ClusterResolver {
 public:
  // Errors: InvalidArgument, on one line (TF_CONFIG is no JSON or has values of wrong types; names
  // the JSON path).
  explicit TFConfigClusterResolver(const TFConfigClusterResolverOptions& options = {});

  train::ClusterSpec cluster_spec() const override { return cluster_; }
  // Both: TF_CONFIG's session_master where it has one; "" for a cluster of at most one task; else
  // that task's address, or this task's own.
  // Errors: InvalidArgument (no such task; it is not known which task this is).
  std::string master(const std::string& task_type, int task_id,
                     const std::string& rpc_layer = "") const override;
  std::string master() const override;
  std::string environment() const override { return environment_; }
  std::string source() const override { return "TF_CONFIG"; }

 private:
  // Nothing: each task has its own.
  std::optional<std::string> master_of_all_tasks() const;

  train::ClusterSpec cluster_;
  std::optional<std::string> session_master_;
  std::string environment_;
};

}  // namespace cohort::distribute::cluster_resolver
