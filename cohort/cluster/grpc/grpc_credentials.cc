#include "cohort/cluster/grpc/grpc_credentials.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <utility>
#include <vector>

#include "cohort/core/error.h"

namespace cohort::internal::rpc {
namespace {

using security::Security;
namespace tls = grpc::experimental;

constexpr char kTokenKey[] = "cohort-token";
std::shared_ptr<tls::CertificateProviderInterface> watched_files(
    const Security& security, const TransportSettings& settings) {
  const distribute::Credentials& files = security.credentials();
  return std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key_file, files.certificate_file, files.ca_file,
      static_cast<unsigned>(settings.certificate_refresh.count()));
}

// gRPC has checked that the authority signed the server's certificate; this checks whose it is.
class IdentityVerifier : public tls::ExternalCertificateVerifier {
 public:
  IdentityVerifier(std::shared_ptr<const Security> security, std::shared_ptr<ServerCheck> check)
      : security_(std::move(security)), check_(std::move(check)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)> callback, grpc::Status* sync_status) override {
    std::vector<std::string> uris;
    for (const grpc::string_ref& uri : request->uri_names())
      uris.emplace_back(uri.data(), uri.size());
    if (!check_->accept(*security_, uris)) {
      *sync_status = grpc::Status(grpc::UNAUTHENTICATED, "the server is another task");
    }
    return true;  // done
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<const Security> security_;
  const std::shared_ptr<ServerCheck> check_;
};

}  // namespace

bool ServerCheck::accept(const Security& security, const std::vector<std::string>& uris) {
  std::string failure;
  try {
    const TaskId task = security.task_of(uris.size() == 1 ? uris.front() : "", address_);
    if (!expected_.job.empty() && task != expected_) {
      failure = str("the server at ", address_, " is ", task, ", not ", expected_);
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  const std::lock_guard lock(mutex_);
  failure_ = std::move(failure);
  return failure_.empty();
}

std::string ServerCheck::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Security& security,
                                                            const TransportSettings& settings) {
  if (security.mode() != Security::Mode::kTls) return grpc::InsecureServerCredentials();
  tls::TlsServerCredentialsOptions options(watched_files(security, settings));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  // Each call checks which task the caller is (authenticated_task), so that a refusal can give a
  // reason.
  options.set_certificate_verifier(std::make_shared<tls::NoOpCertificateVerifier>());
  return tls::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(
    const std::shared_ptr<const Security>& security, const std::string& address,
    const std::shared_ptr<ServerCheck>& check, const TransportSettings& settings) {
  security->check_peer_address(address);
  if (security->mode() != Security::Mode::kTls) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(watched_files(*security, settings));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<IdentityVerifier>(security, check));
  options.set_check_call_host(false);  // the identity is checked instead
  return tls::TlsCredentials(options);
}

std::optional<TaskId> authenticated_task(const Security& security,
                                         const grpc::CallbackServerContext& context) {
  switch (security.mode()) {
    case Security::Mode::kNone:
      return std::nullopt;
    case Security::Mode::kToken: {
      const auto [first, last] = context.client_metadata().equal_range(kTokenKey);
      const bool one = first != last && std::next(first) == last;
      if (!one || !security.is_token({first->second.data(), first->second.size()})) {
        throw UnauthenticatedError(str("the caller at ", context.peer(),
                                       one ? " gives a wrong token" : " gives no token",
                                       ". All tasks of a cluster need the same token_file"));
      }
      return std::nullopt;
    }
    case Security::Mode::kTls:
      break;
  }
  const std::vector<grpc::string_ref> uris =
      context.auth_context()->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  std::string_view uri;
  if (uris.size() == 1) uri = {uris.front().data(), uris.front().size()};
  return security.task_of(uri, context.peer());
}

void add_token(const Security& security, grpc::ClientContext& context) {
  if (security.mode() == Security::Mode::kToken) context.AddMetadata(kTokenKey, security.token());
}

}  // namespace cohort::internal::rpc
