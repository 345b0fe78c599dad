// A certificate authority: a key on P-256 and what it signs.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace cohort::internal::security {

struct SigningRequest {
  std::string uri;
  std::string common_name;         // for people; at most 64 bytes
  std::vector<std::string> hosts;  // names, IPv4 or IPv6 addresses
  std::chrono::seconds lifetime;
  // The beginning of the validity, relative to now: a minute before, so that hosts whose clocks
  // differ a little agree.
  std::chrono::seconds starts_after{-60};
};

struct SignedCertificate {
  std::string certificate_pem;
  std::string key_pem;
};

// Thread safety: none.
class Signer {
 public:
  // Valid for ten years.
  static Signer make(const std::string& cluster);
  // Errors: FailedPrecondition (not PEM, no authority, another cluster's; texts call it `name`).
  static Signer from_pem(const std::string& certificate, const std::string& key,
                         const std::string& cluster, const std::string& name);
  ~Signer();
  Signer(Signer&&) noexcept;

  // A new key and its certificate, for servers and clients.
  // Errors: InvalidArgument (a host that is none), Internal (OpenSSL fails).
  SignedCertificate sign(const SigningRequest& request) const;

  std::string certificate_pem() const;
  std::string key_pem() const;

 private:
  struct Parts;
  explicit Signer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace cohort::internal::security
