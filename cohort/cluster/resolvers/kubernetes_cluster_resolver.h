// The pods of a Kubernetes cluster that carry certain labels, by its HTTPS API.
//
//   KubernetesClusterResolver resolver({.job_to_label_mapping = {{"worker", {"job-name=train"}}},
//                                       .pod_namespace = "ml",
//                                       .pod_address = PodAddress::kPod,
//                                       .pod_name = std::getenv("HOSTNAME")});
//   resolver.cluster_spec();   // ClusterSpec({'worker': ['10.1.0.7:8470', ...]})
//
// The names of an Indexed Job's pods with a headless service are known before they run: a TF_CONFIG
// needs no API (docs/cluster.md).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"
#include "cohort/core/program/task_id.h"

namespace cohort::distribute::cluster_resolver {

enum class PodAddress {
  kHost,  // of its machine, as TensorFlow: pods with a host port, one on each machine
  kPod,   // its own
};

struct KubernetesClusterResolverOptions {
  // Label selectors by job. A job's pods are those of its selectors, one after the other.
  std::map<std::string, std::vector<std::string>> job_to_label_mapping = {
      {"worker", {"job-name=tensorflow"}}};
  int tf_server_port = 8470;
  std::string rpc_layer = "grpc";
  std::string pod_namespace = "";  // empty: all, which the token must allow
  PodAddress pod_address = PodAddress::kHost;
  // The name of this pod, by which task_type() and task_id() are found among the pods. Empty: they
  // are what was set.
  std::string pod_name = "";
  // How many pods a job must have; others may have any number but none.
  std::map<std::string, int> num_pods = {};
  // How long a call of cluster_spec() may take in all.
  std::chrono::milliseconds timeout{30'000};
  // True: asks again, each second, until all pods run or the timeout has passed. False: pods that
  // do not run yet are an error at once, as in TensorFlow.
  bool wait_for_pods = false;

  // The API's address, "https://host:port". Empty: that in KUBERNETES_SERVICE_HOST and _PORT. This
  // and the two files are what a pod finds in its environment.
  std::string api_address = "";
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  // The environment; nothing: the process's.
  std::optional<Variables> variables = std::nullopt;
};

// Asks at each call of cluster_spec(), and reads the token anew, because Kubernetes renews it.
// Tasks are ordered by the names of their pods; numbers in names compare by their value.
class COHORT_API KubernetesClusterResolver final : public ClusterResolver {
 public:
  // Errors: FailedPrecondition (no API address: not in a pod?); InvalidArgument (an API address
  // that is not https).
  explicit KubernetesClusterResolver(KubernetesClusterResolverOptions options = {});

  // Errors: FailedPrecondition (a pod does not run, a job has no or not as many pods, no token);
  // Unauthenticated (the token or the server's certificate); PermissionDenied; DeadlineExceeded,
  // Unavailable (the server); Unknown (an answer that is none).
  train::ClusterSpec cluster_spec() const override;
  // The job and the index of the pod `pod_name`, unless they were set. Both call cluster_spec()
  // once.
  // Errors: those of cluster_spec().
  std::optional<std::string> task_type() const override;
  std::optional<int> task_id() const override;
  std::string source() const override { return "Kubernetes"; }

 private:
  std::optional<TaskId> find_self() const;

  KubernetesClusterResolverOptions options_;
  mutable std::optional<TaskId> self_;  // once cluster_spec() has seen it
};

}  // namespace cohort::distribute::cluster_resolver
