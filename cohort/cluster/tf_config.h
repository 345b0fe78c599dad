// TF_CONFIG: the JSON in which launchers tell a task its cluster and its place in it.
//
//   {"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},
//    "task": {"type": "worker", "index": 1}}
//
// It is read as TensorFlow reads it: an index may be a string, a task's type a number, a job an
// object of addresses by index, and unknown members are passed over. What a program may run with is
// stricter: cluster_check.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/cluster/cluster_spec.h"

namespace cohort::internal {

// Nothing where the text has no such member.
struct TfConfig {
  train::ClusterSpec cluster;  // empty where there is none
  std::optional<std::string> task_type;
  std::optional<int> task_index;
  std::optional<std::string> rpc_layer;
  std::optional<std::string> session_master;
  std::optional<std::string> environment;

  bool operator==(const TfConfig&) const = default;
};

// At most 1 MB, 16 levels deep. Errors: InvalidArgument, on one line: "TF_CONFIG: ", the JSON path
// of what is wrong ("cluster.worker[1]", "top level"), what it is, what to do. No JSON; a member
// twice; a value of a wrong type; an index that is negative, no number, or there twice; NUL bytes.
TfConfig parse_tf_config(std::string_view text);

// The configuration as one line, which parse_tf_config reads as an equal configuration.
// Errors: InvalidArgument (text that is not UTF-8).
std::string print_tf_config(const TfConfig& config);

}  // namespace cohort::internal
