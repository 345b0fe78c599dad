#include "cohort/cluster/security/identity_uri.h"

#include <algorithm>
#include <cstdint>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::security {
namespace {

constexpr std::string_view kScheme = "cohort://";
constexpr size_t kMostIdentityNameBytes = 64;

}  // namespace

bool is_identity_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostIdentityNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

std::string identity_uri(const ClusterIdentity& identity) {
  return str(kScheme, identity.cluster, "/", identity.task.job, "/", identity.task.index);
}

std::string identity_host(const ClusterIdentity& identity) {
  std::string host =
      str(identity.task.job, "-", identity.task.index, ".", identity.cluster, ".cohort");
  std::replace(host.begin(), host.end(), '_', '-');  // hosts' names have none
  return host;
}

std::optional<ClusterIdentity> parse_identity_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  const std::string_view path = uri.substr(kScheme.size());
  const size_t first = path.find('/');
  const size_t last = path.rfind('/');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::optional<int32_t> index = parse_number<int32_t>(path.substr(last + 1));
  if (!index || *index < 0) return std::nullopt;
  ClusterIdentity identity{std::string(path.substr(0, first)),
                           {std::string(path.substr(first + 1, last - first - 1)), *index}};
  if (!is_identity_name(identity.cluster) || !is_identity_name(identity.task.job)) {
    return std::nullopt;
  }
  if (identity_uri(identity) != uri) return std::nullopt;  // "+1", "01"
  return identity;
}

}  // namespace cohort::internal::security
