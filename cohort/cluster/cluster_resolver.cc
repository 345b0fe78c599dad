#include "cohort/cluster/cluster_resolver.h"

#include "cohort/cluster/master_url.h"

namespace cohort::distribute::cluster_resolver {

ClusterResolver::~ClusterResolver() = default;

std::string ClusterResolver::master(const std::string& task_type, int task_id,
                                    const std::string& rpc_layer) const {
  return internal::master_url(cluster_spec().task_address(task_type, task_id),
                              rpc_layer.empty() ? this->rpc_layer() : rpc_layer);
}

std::string ClusterResolver::master() const {
  const train::ClusterSpec spec = cluster_spec();
  const std::optional<std::string> type = task_type();
  const std::optional<int> id = task_id();
  if (spec.empty() || !type || !id) return "";
  return internal::master_url(spec.task_address(*type, *id), rpc_layer());
}

}  // namespace cohort::distribute::cluster_resolver
