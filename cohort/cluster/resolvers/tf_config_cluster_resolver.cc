#include "cohort/cluster/resolvers/tf_config_cluster_resolver.h"

#include "cohort/cluster/config_error.h"
#include "cohort/cluster/resolvers/process_variables.h"
#include "cohort/cluster/tf_config.h"

namespace cohort::distribute::cluster_resolver {

TFConfigClusterResolver::TFConfigClusterResolver(const TFConfigClusterResolverOptions& options) {
  const internal::VariableReader variables(options.variables);
  internal::TfConfig config = internal::parse_tf_config(variables.find("TF_CONFIG").value_or("{}"));
  cluster_ = std::move(config.cluster);
  session_master_ = std::move(config.session_master);
  task_type_ = options.task_type ? options.task_type : config.task_type;
  task_id_ = options.task_id ? options.task_id : config.task_index;
  rpc_layer_ = options.rpc_layer ? *options.rpc_layer : config.rpc_layer.value_or("");
  environment_ = options.environment ? *options.environment : config.environment.value_or("");
}

std::optional<std::string> TFConfigClusterResolver::master_of_all_tasks() const {
  if (session_master_) return session_master_;
  if (cluster_.num_tasks() <= 1) return "";
  return std::nullopt;
}

std::string TFConfigClusterResolver::master(const std::string& task_type, int task_id,
                                            const std::string& rpc_layer) const {
  if (auto master = master_of_all_tasks()) return *std::move(master);
  return ClusterResolver::master(task_type, task_id, rpc_layer);
}

std::string TFConfigClusterResolver::master() const {
  if (auto master = master_of_all_tasks()) return *std::move(master);
  if (!task_type_ || !task_id_) {
    internal::throw_config_error(
        source(), "task",
        "does not say which of the cluster's tasks this is, and so not which is its master; give "
        "type and index");
  }
  return ClusterResolver::master();
}

}  // namespace cohort::distribute::cluster_resolver
