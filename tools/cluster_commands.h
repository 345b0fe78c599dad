// `cohort cluster ...`: what a cluster needs before it runs.
//
// Each command writes its result to `out` and returns the program's exit code.
#pragma once

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

}  // namespace cohort::tools
