#include "cohort/cluster/resolvers/gce_cluster_resolver.h"

#include <algorithm>
#include <vector>

#include "cohort/cluster/config_error.h"
#include "cohort/cluster/resolvers/api_answer.h"
#include "cohort/cluster/resolvers/http_call.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using Json = nlohmann::json;
using internal::HttpRequest;
using internal::quoted;
using internal::quoted_start;
using internal::str;
using internal::text_at;
using GceOptions = GCEClusterResolverOptions;

constexpr std::string_view kMetadata = "GCE metadata server";
constexpr std::string_view kApi = "GCE API";
constexpr size_t kMostInstances = 100'000;

// Letters, digits and what names of Google Cloud have besides: they become parts of a URL.
void check_name(const char* option, const std::string& name) {
  const bool right = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':';
  });
  if (!right) {
    throw InvalidArgumentError(str("GCE: ", option, ": ", quoted_start(name), " is no name"));
  }
}

void check_options(const GceOptions& options) {
  check_name("project", options.project);
  check_name("zone", options.zone);
  check_name("instance_group", options.instance_group);
  if (options.port < 1 || options.port > 65535) {
    throw InvalidArgumentError(str("GCE: port: is ", options.port, "; ports are 1 to 65535"));
  }
  if (!options.api_address.starts_with("https://")) {
    throw InvalidArgumentError(
        str("GCE: api_address ", quoted(options.api_address), " must begin with https://"));
  }
}

// The instances of a group, asked with one token.
class Question {
 public:
  explicit Question(const GceOptions& options)
      : options_(options),
        deadline_(std::chrono::steady_clock::now() + internal::bounded_wait(options.timeout)),
        token_(fetch_token()) {}

  // The names of the group's instances.
  std::vector<std::string> instances() const {
    std::vector<std::string> names;
    std::string next;
    do {
      const std::string page_token =
          next.empty() ? "" : "&pageToken=" + internal::url_escaped(next);
      Json page = ask(str("instanceGroups/", options_.instance_group, "/listInstances?orderBy=name",
                          page_token),
                      R"({"instanceState": "ALL"})");
      const Json::array_t items = internal::take_items(kApi, page, "items");
      for (const Json& item : items) names.push_back(name_of(item));
      next = text_at(page, {"nextPageToken"}).value_or("");
      if (names.size() > kMostInstances || (items.empty() && !next.empty())) {
        throw UnknownError(str(kApi, ": a list of instances that does not end"));
      }
    } while (!next.empty());
    std::ranges::sort(names, internal::natural_less);
    return names;
  }

  std::string address(const std::string& name) const {
    const Json instance = ask("instances/" + name, std::nullopt);
    const auto interfaces =
        instance.is_object() ? instance.find("networkInterfaces") : instance.end();
    if (!instance.is_object() || interfaces == instance.end() || !interfaces->is_array() ||
        interfaces->empty()) {
      throw UnknownError(str(kApi, ": instance ", quoted(name), " has no network interface"));
    }
    const std::string ip = text_at(interfaces->front(), {"networkIP"}).value_or("");
    return internal::address_of(kApi, ip, options_.port);
  }

 private:
  std::string fetch_token() const {
    const internal::HttpResponse response =
        internal::http_call({.url = options_.metadata_address +
                                    "/computeMetadata/v1/instance/service-accounts/default/token",
                             .headers = {"Metadata-Flavor: Google"},
                             .deadline = deadline_,
                             .plain_http = true});
    const auto token = text_at(internal::parse_answer(kMetadata, response), {"access_token"});
    const bool printable = token && !token->empty() &&
                           std::ranges::all_of(*token, [](char c) { return c > ' ' && c < 0x7f; });
    if (!printable) throw UnknownError(str(kMetadata, ": an answer without a token"));
    return *token;
  }

  Json ask(const std::string& path, const std::optional<std::string>& body) const {
    return internal::parse_answer(
        kApi,
        internal::http_call({.url = str(options_.api_address, "/compute/v1/projects/",
                                        options_.project, "/zones/", options_.zone, "/", path),
                             .headers = {"Authorization: Bearer " + token_},
                             .body = body,
                             .ca_file = options_.ca_file,
                             .deadline = deadline_,
                             .direct = false}));
  }

  // The last part of "https://.../instances/NAME". Errors: FailedPrecondition (it does not run).
  static std::string name_of(const Json& item) {
    const std::string url = text_at(item, {"instance"}).value_or("");
    const std::string name = url.substr(url.rfind('/') + 1);
    const bool right = !name.empty() && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
    if (!right) throw UnknownError(str(kApi, ": an instance of the name ", quoted_start(name)));
    const std::string status = text_at(item, {"status"}).value_or("of unknown state");
    if (status != "RUNNING") {
      throw FailedPreconditionError(
          str("GCE: instance ", quoted(name), " is not running; it is ", quoted_start(status)));
    }
    return name;
  }

  const GceOptions& options_;
  std::chrono::steady_clock::time_point deadline_;
  std::string token_;
};

}  // namespace

GCEClusterResolver::GCEClusterResolver(const GCEClusterResolverOptions& options)
    : options_(options) {
  check_options(options_);
  internal::check_not_negative("GCEClusterResolverOptions: timeout", options_.timeout);
  while (options_.api_address.ends_with('/')) options_.api_address.pop_back();
  while (options_.metadata_address.ends_with('/')) options_.metadata_address.pop_back();
  task_type_ = options_.task_type;
  task_id_ = options_.task_id;
  rpc_layer_ = options_.rpc_layer;
}

train::ClusterSpec GCEClusterResolver::cluster_spec() const {
  const Question question(options_);
  train::ClusterSpec::Tasks tasks;
  for (const std::string& name : question.instances()) {
    tasks.emplace(static_cast<int>(tasks.size()), question.address(name));
  }
  if (tasks.empty()) {
    throw FailedPreconditionError(
        str("GCE: instance group ", quoted(options_.instance_group), " has no instances"));
  }
  return train::ClusterSpec(train::ClusterSpec::Jobs{{options_.task_type, std::move(tasks)}});
}

}  // namespace cohort::distribute::cluster_resolver
