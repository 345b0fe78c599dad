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

// Which task this is, and all else but the spec, is the first resolver's word, unless it is set here.
class COHORT_API UnionResolver final : public ClusterResolver {
 public:
  // Errors: InvalidArgument (none, or an empty pointer).
  explicit UnionResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers);

  // A job that several have: without holes in any, one's tasks follow the other's; else indices stay.
  // Errors: those of the resolvers; InvalidArgument (two have a task of one index, where they stay).
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
