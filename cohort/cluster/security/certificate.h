// Reads a certificate, for checks before a connection is tried with it.
#pragma once

#include <string>

namespace cohort::internal::security {

struct CertificateFacts {
  std::string uri;      // the one URI among its names
  std::string expires;  // "Nov 22 22:26:36 2026 GMT"
};

// Reads all three as PEM. `name` stands for the certificate in messages.
// Errors: FailedPrecondition (not PEM; no URI or several; not yet or no longer valid; of another
// key; not signed by an authority of `ca`).
CertificateFacts check_certificate(const std::string& certificate, const std::string& key,
                                   const std::string& ca, const std::string& name);

}  // namespace cohort::internal::security
