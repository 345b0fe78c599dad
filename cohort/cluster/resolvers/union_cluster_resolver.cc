#include "cohort/cluster/resolvers/union_cluster_resolver.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using Tasks = train::ClusterSpec::Tasks;

bool has_holes(const Tasks& tasks) {
  return !tasks.empty() && tasks.rbegin()->first != static_cast<int>(tasks.size()) - 1;
}

Tasks append(const std::vector<Tasks>& parts) {
  Tasks merged;
  for (const Tasks& part : parts) {
    for (const auto& [index, address] : part) {
      merged.emplace(static_cast<int>(merged.size()), address);
    }
  }
  return merged;
}

Tasks merge_by_index(const std::string& job, const std::vector<Tasks>& parts) {
  Tasks merged;
  for (const Tasks& part : parts) {
    for (const auto& [index, address] : part) {
      if (merged.emplace(index, address).second) continue;
      throw InvalidArgumentError(internal::str(
          "UnionResolver: two resolvers have the task ", index, " of job ", internal::quoted(job),
          ": ", internal::quoted(merged.at(index)), " and ", internal::quoted(address)));
    }
  }
  return merged;
}

}  // namespace

UnionResolver::UnionResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers)
    : resolvers_(std::move(resolvers)) {
  if (resolvers_.empty()) throw InvalidArgumentError("UnionResolver: there is no resolver");
  if (std::ranges::find(resolvers_, nullptr) != resolvers_.end()) {
    throw InvalidArgumentError("UnionResolver: a resolver is null");
  }
}

train::ClusterSpec UnionResolver::cluster_spec() const {
  std::map<std::string, std::vector<Tasks>> parts;
  for (const auto& resolver : resolvers_) {
    const train::ClusterSpec spec = resolver->cluster_spec();
    for (const auto& [job, tasks] : spec.as_dict()) parts[job].push_back(tasks);
  }
  train::ClusterSpec::Jobs jobs;
  for (const auto& [job, tasks] : parts) {
    jobs[job] = std::ranges::any_of(tasks, has_holes) ? merge_by_index(job, tasks) : append(tasks);
  }
  return train::ClusterSpec(std::move(jobs));
}

std::string UnionResolver::master() const { return resolvers_.front()->master(); }

std::optional<std::string> UnionResolver::task_type() const {
  return task_type_ ? task_type_ : resolvers_.front()->task_type();
}

std::optional<int> UnionResolver::task_id() const {
  return task_id_ ? task_id_ : resolvers_.front()->task_id();
}

std::string UnionResolver::rpc_layer() const {
  return rpc_layer_.empty() ? resolvers_.front()->rpc_layer() : rpc_layer_;
}

std::string UnionResolver::environment() const { return resolvers_.front()->environment(); }

std::optional<Rendezvous> UnionResolver::rendezvous() const {
  return resolvers_.front()->rendezvous();
}

std::optional<std::map<std::string, int>> UnionResolver::num_accelerators() const {
  return resolvers_.front()->num_accelerators();
}

std::string UnionResolver::source() const { return resolvers_.front()->source(); }

}  // namespace cohort::distribute::cluster_resolver
