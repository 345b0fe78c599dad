// A cluster that the program itself knows.
//
//   tf::distribute::cluster_resolver::SimpleClusterResolver resolver(
//       tf::train::ClusterSpec({{"worker", {"10.0.0.1:2222", "10.0.0.2:2222"}}}),
//       {.task_type = "worker", .task_id = 1, .rpc_layer = "grpc"});
//   resolver.master("worker", 0);   // "grpc://10.0.0.1:2222"
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

struct SimpleClusterResolverOptions {
  std::string master = "";  // what master() returns
  std::optional<std::string> task_type = std::nullopt;
  std::optional<int> task_id = std::nullopt;
  std::string environment = "";
  std::optional<std::map<std::string, int>> num_accelerators = std::nullopt;
  std::string rpc_layer = "";
};

class COHORT_API SimpleClusterResolver final : public ClusterResolver {
 public:
  explicit SimpleClusterResolver(train::ClusterSpec cluster_spec,
                                 SimpleClusterResolverOptions options = {});

  train::ClusterSpec cluster_spec() const override { return cluster_; }
  using ClusterResolver::master;
  std::string master() const override;
  std::string environment() const override { return environment_; }
  std::optional<std::map<std::string, int>> num_accelerators() const override {
    return num_accelerators_;
  }
  std::string source() const override { return "ClusterSpec"; }

 private:
  train::ClusterSpec cluster_;
  std::string master_;
  std::string environment_;
  std::optional<std::map<std::string, int>> num_accelerators_;
};

}  // namespace cohort::distribute::cluster_resolver
