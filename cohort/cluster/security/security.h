// A task's credentials, read and checked, and the rules that follow from them. Knows no transport.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cohort/cluster/security/credentials.h"
#include "cohort/cluster/security/identity_uri.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::security {

// Thread safety: immutable.
class Security {
 public:
  enum class Mode { kNone, kToken, kTls };

  // For the task `self`; nothing: a certificate of any task will do (an operator's, say, which is
  // the one that is taken from a directory).
  // Errors: InvalidArgument (options that contradict each other), NotFound (no such file),
  // FailedPrecondition (a file that others may read, a token that is none, a certificate of another
  // task, one that has expired or does not fit its key).
  static std::shared_ptr<const Security> load(const distribute::Credentials& credentials,
                                              const std::optional<TaskId>& self);

  Mode mode() const { return mode_; }
  bool is_insecure() const { return credentials_.insecure; }
  const distribute::Credentials& credentials() const { return credentials_; }
  // The identity in the certificate; kTls only.
  const ClusterIdentity& identity() const { return identity_; }

  // Checks that a server may listen at the address.
  // Errors: FailedPrecondition (others can reach the address, and nothing proves who calls).
  void check_address(const std::string& address, bool is_loopback) const;
  // Checks that a caller may talk to the address.
  // Errors: the same.
  void check_peer_address(const std::string& address) const;

  // The task that a peer's certificate names. Errors: Unauthenticated (none of this cluster's).
  TaskId task_of(std::string_view uri, const std::string& address) const;

  // Whether this is the cluster's token; kToken only. Takes the same time for all wrong tokens.
  bool is_token(std::string_view token) const;
  const std::string& token() const { return token_; }

 private:
  Security() = default;
  void load_tls(const std::optional<TaskId>& self);

  distribute::Credentials credentials_;
  Mode mode_ = Mode::kNone;
  ClusterIdentity identity_;
  std::string token_;
};

// Whether only this host can reach "host:port": a literal loopback address, "localhost" or a unix
// socket.
bool is_loopback_address(std::string_view address);

}  // namespace cohort::internal::security
