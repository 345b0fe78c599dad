// The credentials by which a task proves who it is. The files are those that `cohort cluster
// certificates` makes.
//
//   tf::distribute::Server server(resolver, {.credentials = {
//       .certificate_file = "certs/worker-0.pem", .key_file = "certs/worker-0.key",
//       .ca_file = "certs/ca.pem"}});
#pragma once

#include <string>

#include "cohort/core/export.h"

namespace cohort::distribute {

// One of three ways; with none, a server listens on loopback only.
struct Credentials {
  // Mutual TLS: the certificate names the task (URI cohort://<cluster>/<job>/<index>), and
  // `ca_file` holds the authority that must have signed every peer's. The files are read again when
  // they change, so that certificates can be renewed while a task runs.
  std::string certificate_file = "";
  std::string key_file = "";  // no rights for others
  std::string ca_file = "";

  // Replaces the three files: the directory that `cohort cluster certificates` has made, in which
  // each task finds its own <job>-<index>.pem and .key, and ca.pem. A program that is no task takes
  // operator-0's. No other file of it is read, so a copy without ca.key and the other tasks' files
  // does as well.
  std::string directory = "";

  // A secret of 64 hexadecimal digits in a file of mode 0600. It proves that a caller belongs to
  // the cluster, not which task it is, and anybody who sees it can use it: loopback only.
  std::string token_file = "";

  // True: callers and servers need not prove who they are, even on addresses that others can reach.
  // A warning says so every minute.
  bool insecure = false;

  // The credentials that the environment names: COHORT_CERTIFICATE_FILE, COHORT_KEY_FILE,
  // COHORT_CA_FILE, else COHORT_CERTIFICATES, a directory; COHORT_TOKEN_FILE;
  // COHORT_INSECURE_NETWORK=1.
  COHORT_API static Credentials from_environment();

  bool empty() const {
    return certificate_file.empty() && key_file.empty() && ca_file.empty() && directory.empty() &&
           token_file.empty() && !insecure;
  }
};

}  // namespace cohort::distribute
