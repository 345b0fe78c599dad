#include "cohort/cluster/resolvers/simple_cluster_resolver.h"

#include <utility>

#include "cohort/cluster/master_url.h"

namespace cohort::distribute::cluster_resolver {

SimpleClusterResolver::SimpleClusterResolver(train::ClusterSpec cluster_spec,
                                             SimpleClusterResolverOptions options)
    : cluster_(std::move(cluster_spec)),
      master_(std::move(options.master)),
      environment_(std::move(options.environment)),
      num_accelerators_(std::move(options.num_accelerators)) {
  task_type_ = std::move(options.task_type);
  task_id_ = options.task_id;
  rpc_layer_ = std::move(options.rpc_layer);
}

std::string SimpleClusterResolver::master() const {
  return internal::master_url(master_, rpc_layer_);
}

}  // namespace cohort::distribute::cluster_resolver
