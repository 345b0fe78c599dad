// The running instances of a Google Compute Engine instance group, by its HTTPS API.
//
//   GCEClusterResolver resolver({.project = "p", .zone = "us-west1-a", .instance_group = "workers",
//                                .port = 8470, .task_id = 1});
//   resolver.cluster_spec();   // ClusterSpec({'worker': ['10.128.0.2:8470', '10.128.0.3:8470']})
#pragma once

#include <chrono>
#include <string>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"

namespace cohort::distribute::cluster_resolver {

struct GCEClusterResolverOptions {
  std::string project;
  std::string zone;
  std::string instance_group;
  int port = 0;  // at which every task listens
  std::string task_type = "worker";
  int task_id = 0;
  std::string rpc_layer = "grpc";
  std::chrono::milliseconds timeout{30'000};  // for all of a call of cluster_spec()

  // The server that gives tokens of the instance's service account: Google's own server on each
  // machine, which does not use TLS.
  std::string metadata_address = "http://metadata.google.internal";
  std::string api_address = "https://compute.googleapis.com";
  std::string ca_file = "";  // of the API; empty: the system's authorities
};

// Asks at each call of cluster_spec(). Tasks are ordered by the names of their instances; numbers
// in names compare by their value. Addresses are the internal ones.
class COHORT_API GCEClusterResolver final : public ClusterResolver {
 public:
  // Errors: InvalidArgument (no name of a project, zone or group, a port that is none, an API
  // address that is not https).
  explicit GCEClusterResolver(const GCEClusterResolverOptions& options);

  // Errors: FailedPrecondition (no instances, one that does not run); Unauthenticated,
  // PermissionDenied; NotFound (no such group); DeadlineExceeded, Unavailable (a server); Unknown
  // (an answer that is none).
  train::ClusterSpec cluster_spec() const override;
  std::string source() const override { return "GCE"; }

 private:
  GCEClusterResolverOptions options_;
};

}  // namespace cohort::distribute::cluster_resolver
