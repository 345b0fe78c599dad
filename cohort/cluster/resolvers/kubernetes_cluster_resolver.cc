#include "cohort/cluster/resolvers/kubernetes_cluster_resolver.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/resolvers/api_answer.h"
#include "cohort/cluster/resolvers/kubernetes_pods.h"
#include "cohort/cluster/resolvers/process_variables.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/backoff.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using Clock = std::chrono::steady_clock;
using internal::KubernetesApi;
using internal::KubernetesPod;
using internal::quoted;
using internal::str;
using KubernetesOptions = KubernetesClusterResolverOptions;
using PodsByJob = std::map<std::string, std::vector<KubernetesPod>>;

constexpr std::chrono::seconds kBetweenQuestions{1};

std::string api_address(const KubernetesOptions& options) {
  std::string address = options.api_address;
  if (address.empty()) {
    const internal::VariableReader variables(options.variables);
    const std::string host =
        variables.get("KUBERNETES_SERVICE_HOST", "Kubernetes, as the container of a pod");
    const bool ipv6 = host.find(':') != std::string::npos;
    address = str("https://", ipv6 ? "[" + host + "]" : host, ":",
                  variables.find("KUBERNETES_SERVICE_PORT").value_or("443"));
  }
  if (!address.starts_with("https://")) {
    throw InvalidArgumentError(
        str("Kubernetes: api_address ", quoted(address), " must begin with https://"));
  }
  while (address.ends_with('/')) address.pop_back();
  return address;
}

PodsByJob list_jobs(const KubernetesApi& api, const KubernetesOptions& options) {
  PodsByJob jobs;
  for (const auto& [job, selectors] : options.job_to_label_mapping) {
    std::vector<KubernetesPod>& pods = jobs[job];
    for (const std::string& selector : selectors) {
      std::ranges::move(list_pods(api, selector), std::back_inserter(pods));
    }
  }
  return jobs;
}

// The reason why the pods cannot be used yet; empty if they can.
std::string problem_of(const PodsByJob& jobs, const KubernetesOptions& options) {
  for (const auto& [job, pods] : jobs) {
    for (const KubernetesPod& pod : pods) {
      if (pod.phase == "Running") continue;
      return str("Pod ", quoted(pod.name), " is not running; phase: ", quoted(pod.phase));
    }
    const auto wanted = options.num_pods.find(job);
    if (wanted != options.num_pods.end() && static_cast<int>(pods.size()) != wanted->second) {
      return str("job ", quoted(job), " has ", pods.size(), " of ", wanted->second, " pods");
    }
    if (pods.empty()) return str("no pods have the labels of job ", quoted(job));
  }
  return "";
}

PodsByJob find_running(const KubernetesApi& api, const KubernetesOptions& options) {
  internal::Backoff pauses(kBetweenQuestions);
  for (;;) {
    PodsByJob jobs = list_jobs(api, options);
    const std::string problem = problem_of(jobs, options);
    if (problem.empty()) return jobs;
    if (!options.wait_for_pods) throw FailedPreconditionError("Kubernetes: " + problem);
    if (Clock::now() + kBetweenQuestions >= api.deadline) {
      throw DeadlineExceededError(
          str("Kubernetes: after ", options.timeout.count(), " ms ", problem));
    }
    pauses.sleep(api.deadline);
  }
}

}  // namespace

KubernetesClusterResolver::KubernetesClusterResolver(KubernetesClusterResolverOptions options)
    : options_(std::move(options)) {
  internal::check_not_negative("KubernetesClusterResolverOptions: timeout", options_.timeout);
  options_.api_address = api_address(options_);
  rpc_layer_ = options_.rpc_layer;
}

train::ClusterSpec KubernetesClusterResolver::cluster_spec() const {
  const PodsByJob pods_by_job =
      find_running({.address = options_.api_address,
                    .token_file = options_.token_file,
                    .ca_file = options_.ca_file,
                    .pod_namespace = options_.pod_namespace,
                    .deadline = Clock::now() + internal::bounded_wait(options_.timeout)},
                   options_);
  train::ClusterSpec::Jobs spec;
  for (const auto& [job, pods] : pods_by_job) {
    auto& tasks = spec[job];
    for (const KubernetesPod& pod : pods) {
      const int index = static_cast<int>(tasks.size());
      const bool host = options_.pod_address == PodAddress::kHost;
      tasks[index] = internal::address_of("Kubernetes API", host ? pod.host_ip : pod.pod_ip,
                                          options_.tf_server_port);
      if (!pod.name.empty() && pod.name == options_.pod_name) self_ = TaskId{job, index};
    }
  }
  return train::ClusterSpec(std::move(spec));
}

std::optional<TaskId> KubernetesClusterResolver::find_self() const {
  if (!self_ && !options_.pod_name.empty()) cluster_spec();
  return self_;
}

std::optional<std::string> KubernetesClusterResolver::task_type() const {
  if (task_type_) return task_type_;
  const std::optional<TaskId> self = find_self();
  return self ? std::optional(self->job) : std::nullopt;
}

std::optional<int> KubernetesClusterResolver::task_id() const {
  if (task_id_) return task_id_;
  const std::optional<TaskId> self = find_self();
  return self ? std::optional(self->index) : std::nullopt;
}

}  // namespace cohort::distribute::cluster_resolver
