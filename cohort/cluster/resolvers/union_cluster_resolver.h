// Several clusters seen as one: workers of one resolver, parameter servers of another.
//
//   UnionResolver resolver({std::make_shared<SlurmClusterResolver>(),
//                           std::make_shared<SimpleClusterResolver>(parameter_servers)});
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

// Joins the specs of several resolvers. Everything else, such as which task this is, comes from the
// first resolver, unless it is set here.
class COHORT_API UnionResolver final : public ClusterResolver {
 public:
  // Errors: InvalidArgument (none, or an empty pointer).
  explicit UnionResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers);

  // Several resolvers may have the same job. If no resolver has holes in its indices, the tasks of
  // one follow those of another; otherwise indices stay.
  // Errors: those of the resolvers; InvalidArgument (two have a task of one index, where they
  // stay).
  train::ClusterSpec cluster_spec() const override;
  using ClusterResolver::master;
  std::string master() const override;
  std::optional<std::string> task_type() const override;
  std::optional<int> task_id() const override;
  std::string rpc_layer() const override;
  std::string environment() const override;
  std::optional<Rendezvous> rendezvous() const override;
  std::optional<std::map<std::string, int>> num_accelerators() const override;
  std::string source() const override;

 private:
  std::vector<std::shared_ptr<const ClusterResolver>> resolvers_;
};

using UnionClusterResolver = UnionResolver;

}  // namespace cohort::distribute::cluster_resolver
