// A cluster's own certificate authority and one certificate for each task, as files.
//
//   make_certificates({.cluster = "mnist", .tasks = {{"worker", 0}}, .directory = "certs"});
//   // certs/ca.pem, certs/ca.key, certs/worker-0.pem, certs/worker-0.key
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cohort/cluster/security/credentials.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::security {

inline constexpr char kOperatorJob[] = "operator";

struct CertificateRequest {
  std::string cluster;
  std::vector<TaskId> tasks = {};
  // Whether a person who may look at the cluster gets a certificate, too: operator-0.
  bool with_operator = true;
  // Made if it is not there. One that is there must be this user's, and nobody else may write to
  // it.
  std::string directory;
  // How long they are valid. Make them again before: an authority that is in `directory` is used
  // again, so that tasks which run go on.
  std::chrono::hours lifetime = std::chrono::days(30);
  // Names and addresses of the hosts, for programs that check them, too; Cohort checks the task.
  std::vector<std::string> hosts = {};
};

struct MadeCertificates {
  std::vector<std::string> files;  // paths, in the order in which they were written
  bool new_authority = true;
};

// Keys are P-256; all files have mode 0600, a new directory 0700. Files appear whole, key and
// certificate of a task one after the other. `ca.key` belongs on no other host.
// Errors: InvalidArgument (a name that cannot be one, no tasks, a lifetime that is none),
// FailedPrecondition (the authority in the directory cannot be used; others could have written the
// directory or read ca.key), file_system.h's errors.
MadeCertificates make_certificates(const CertificateRequest& request);

// The texts of a cluster's certificates and keys, where nothing is written.
struct CertificateTexts {
  std::string ca_pem;
  struct Task {
    TaskId task;
    std::string certificate_pem;
    std::string key_pem;
  };
  std::vector<Task> tasks;  // those that were asked for, in order
};

// Makes certificates for one run, by an authority whose key is kept nowhere. They are valid for 30
// days.
// Errors: InvalidArgument, as make_certificates.
CertificateTexts make_certificate_texts(const std::string& cluster,
                                        const std::vector<TaskId>& tasks);

// The files of one task in such a directory.
distribute::Credentials credentials_in(const std::string& directory, const TaskId& task);

}  // namespace cohort::internal::security
