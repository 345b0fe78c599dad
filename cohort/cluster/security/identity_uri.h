// The name of a task in certificates: cohort://<cluster>/<job>/<index>.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cohort/core/program/task_id.h"

namespace cohort::internal::security {

struct ClusterIdentity {
  std::string cluster;
  TaskId task;
  bool operator==(const ClusterIdentity&) const = default;
};

// Whether `name` can be a cluster's or a job's in such a name: letters, digits, '_', '-' and '.',
// at most 64.
bool is_identity_name(std::string_view name);

std::string identity_uri(const ClusterIdentity& identity);
// The same as a host's name, which TLS asks servers for: "ps-0.test.cohort". Nobody resolves it.
std::string identity_host(const ClusterIdentity& identity);
// Nothing where `uri` is not exactly what identity_uri gives.
std::optional<ClusterIdentity> parse_identity_uri(std::string_view uri);

}  // namespace cohort::internal::security
