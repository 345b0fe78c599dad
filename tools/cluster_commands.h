// `cohort cluster ...`: what a cluster needs before it runs, and how it is while it does.
//
// Each command writes its result to `out` and returns the program's exit code.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace cohort::tools {

struct CertificatesOptions {
  std::string cluster;
  std::string directory;
  int workers = 0;
  int ps = 0;
  bool chief = false;
  bool evaluator = false;
  int days = 30;
  std::vector<std::string> hosts = {};
};
// Makes a certificate authority, or uses the one that is there, and one certificate for each task and
// one for an operator.
// Errors: as security::make_certificates.
int make_cluster_certificates(const CertificatesOptions& options, std::ostream& out);

struct StatusOptions {
  std::string address;       // of any task: "host:port", also "grpc://host:port"
  std::string certificates;  // a directory that has an operator's; empty: the environment's
  double timeout_seconds = 5;
  bool watch = false;
  int64_t times = 0;  // how often `watch` shows it; 0: until the process is ended
  std::chrono::milliseconds interval{1000};
  bool json = false;
  bool terminal = false;  // `out` is one: colours, and `watch` draws over what it drew before
};
// Shows who is in the cluster and how they are. Returns 0 where all tasks are well (alive, or left in
// good order), 1 where one is lost or awaited or the cluster has failed, 138 where it cannot be
// reached, 64 where the address or the credentials are wrong; of `watch`, the last one's.
// Errors are written to `err`, one line each.
int show_cluster_status(const StatusOptions& options, std::ostream& out, std::ostream& err);

}  // namespace cohort::tools
