#include "cohort/cluster/resolvers/kubernetes_pods.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "cohort/cluster/resolvers/api_answer.h"
#include "cohort/cluster/resolvers/http_call.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kKubernetesApi = "Kubernetes API";
constexpr int kPodsPerPage = 500;
constexpr size_t kMostPods = 100'000;
constexpr size_t kLongestToken = 64 << 10;

// Never in an error.
std::string read_token(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string token(kLongestToken + 1, '\0');
  in.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<size_t>(in.gcount()));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool printable = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; });
  if (token.empty() || token.size() > kLongestToken || !printable) {
    throw FailedPreconditionError(
        str("Kubernetes: ", quoted(file),
            " holds no token of a service account; is this program in a pod that mounts one?"));
  }
  return token;
}

std::string page_url(const KubernetesApi& api, const std::string& selector,
                     const std::string& next) {
  const std::string folder =
      api.pod_namespace.empty() ? "" : "namespaces/" + url_escaped(api.pod_namespace) + "/";
  return str(api.address, "/api/v1/", folder, "pods?labelSelector=", url_escaped(selector),
             "&limit=", kPodsPerPage, next.empty() ? "" : "&continue=" + url_escaped(next));
}

KubernetesPod to_pod(const Json& item) {
  const std::optional<std::string> name = text_at(item, {"metadata", "name"});
  if (!name) throw UnknownError(str(kKubernetesApi, ": an answer with a pod that has no name"));
  const bool deleted = text_at(item, {"metadata", "deletionTimestamp"}).has_value();
  return {.name = *name,
          .phase = deleted ? "Terminating" : text_at(item, {"status", "phase"}).value_or("Unknown"),
          .host_ip = text_at(item, {"status", "hostIP"}).value_or(""),
          .pod_ip = text_at(item, {"status", "podIP"}).value_or("")};
}

std::vector<KubernetesPod> list_once(const KubernetesApi& api, const std::string& selector) {
  const std::string token = read_token(api.token_file);
  std::vector<KubernetesPod> pods;
  std::string next;
  do {
    const HttpResponse response =
        http_call({.url = page_url(api, selector, next),
                   .headers = {"Authorization: Bearer " + token, "Accept: application/json"},
                   .ca_file = api.ca_file,
                   .deadline = api.deadline});
    Json page = parse_answer(kKubernetesApi, response);
    const Json::array_t items = take_items(kKubernetesApi, page, "items");
    for (const Json& item : items) pods.push_back(to_pod(item));
    next = text_at(page, {"metadata", "continue"}).value_or("");
    if (pods.size() > kMostPods || (items.empty() && !next.empty())) {
      throw UnknownError(str(kKubernetesApi, ": a list of pods that does not end"));
    }
  } while (!next.empty());
  return pods;
}

}  // namespace

std::vector<KubernetesPod> list_pods(const KubernetesApi& api, const std::string& selector) {
  for (;;) {
    try {
      std::vector<KubernetesPod> pods = list_once(api, selector);
      std::ranges::sort(pods, natural_less, &KubernetesPod::name);
      return pods;
    } catch (const AbortedError&) {
      // The list has grown too old between two pages; ends at the deadline at the latest.
    }
  }
}

}  // namespace cohort::internal
