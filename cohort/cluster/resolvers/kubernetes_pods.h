// The pods that a label selector selects, as the Kubernetes API lists them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace cohort::internal {

struct KubernetesApi {
  std::string address;  // https://host:port
  std::string token_file;
  std::string ca_file;
  std::string pod_namespace;  // empty: all
  std::chrono::steady_clock::time_point deadline;
};

struct KubernetesPod {
  std::string name;
  std::string phase;  // "Running"; "Terminating" where it is being deleted
  std::string host_ip;
  std::string pod_ip;
};

// The pods that the selector selects, sorted by name, of all pages of the list.
// Errors: FailedPrecondition (the token file cannot be read); those of parse_answer and http_call.
std::vector<KubernetesPod> list_pods(const KubernetesApi& api, const std::string& selector);

}  // namespace cohort::internal
