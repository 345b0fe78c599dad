#include "cohort/cluster/security/security.h"

#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>

#include "cohort/cluster/security/certificate.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"

namespace cohort {
namespace {

std::string environment_text(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

distribute::Credentials distribute::Credentials::from_environment() {
  Credentials found = {.certificate_file = environment_text("COHORT_CERTIFICATE_FILE"),
                       .key_file = environment_text("COHORT_KEY_FILE"),
                       .ca_file = environment_text("COHORT_CA_FILE"),
                       .token_file = environment_text("COHORT_TOKEN_FILE"),
                       .insecure = environment_text("COHORT_INSECURE_NETWORK") == "1"};
  // Files of one task's own go before: a launcher gives them to its tasks, whatever its own
  // environment says.
  const bool names_files =
      !found.certificate_file.empty() || !found.key_file.empty() || !found.ca_file.empty();
  if (!names_files) found.directory = environment_text("COHORT_CERTIFICATES");
  return found;
}

namespace internal::security {
namespace {

constexpr size_t kTokenDigits = 64;  // 256 bits

// Errors: FailedPrecondition where `mode` has a bit of `forbidden`.
void check_rights(const std::string& path, mode_t forbidden, std::string_view what) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    throw NotFoundError(str("cannot read ", what, " ", quoted(path), ": ", errno_text(errno)));
  }
  if ((status.st_mode & forbidden) != 0) {
    throw FailedPreconditionError(str(what, " ", quoted(path), " has mode 0", std::oct,
                                      status.st_mode & 0777, ": others may use it. Run: chmod 600 ",
                                      path));
  }
}

std::string read_text(const std::string& path, std::string_view what) {
  std::ifstream file(path, std::ios::binary);
  TextStream text;
  text << file.rdbuf();
  if (!file) {
    throw NotFoundError(str("cannot read ", what, " ", quoted(path), ": ", errno_text(errno)));
  }
  return std::move(text).str();
}

std::string read_token(const std::string& path) {
  check_rights(path, 077, "token file");
  std::string token = read_text(path, "token file");
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  const bool is_hex = token.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (token.size() != kTokenDigits || !is_hex) {
    throw FailedPreconditionError(
        str("token file ", quoted(path), " must hold ", kTokenDigits,
            " hexadecimal digits and nothing else. Make one with: ", "openssl rand -hex 32"));
  }
  return token;
}

constexpr std::string_view kWhatToDo =
    ". Give the task credentials (COHORT_CERTIFICATES=DIR, or certificate_file, key_file and "
    "ca_file; "
    "`cohort cluster certificates` makes them), or say insecure = true (COHORT_INSECURE_NETWORK=1) "
    "where everybody "
    "who can reach the network may do everything";

}  // namespace

std::shared_ptr<const Security> Security::load(const distribute::Credentials& credentials,
                                               const std::optional<TaskId>& self) {
  std::shared_ptr<Security> security(new Security);
  security->credentials_ = credentials;
  const int files = !credentials.certificate_file.empty() + !credentials.key_file.empty() +
                    !credentials.ca_file.empty();
  if (files != 0 && files != 3) {
    throw InvalidArgumentError(
        "credentials: certificate_file, key_file and ca_file belong together; give all three");
  }
  const bool in_directory = !credentials.directory.empty();
  if (files != 0 && in_directory) {
    throw InvalidArgumentError(
        "credentials: give certificate_file, key_file and ca_file, or the directory where they "
        "are");
  }
  if ((files != 0 || in_directory) + !credentials.token_file.empty() + credentials.insecure > 1) {
    throw InvalidArgumentError(
        "credentials: give certificates, or a token_file, or insecure; they exclude each other");
  }
  if (in_directory) {
    security->credentials_ =
        credentials_in(credentials.directory, self.value_or(TaskId{kOperatorJob, 0}));
  }
  if (files != 0 || in_directory) {
    security->mode_ = Mode::kTls;
    security->load_tls(self);
  } else if (!credentials.token_file.empty()) {
    security->mode_ = Mode::kToken;
    security->token_ = read_token(credentials.token_file);
  }
  return security;
}

void Security::load_tls(const std::optional<TaskId>& self) {
  check_rights(credentials_.key_file, 027, "key file");
  const std::string& path = credentials_.certificate_file;
  const CertificateFacts facts = check_certificate(
      read_text(path, "certificate file"), read_text(credentials_.key_file, "key file"),
      read_text(credentials_.ca_file, "ca file"), path);
  const std::optional<ClusterIdentity> identity = parse_identity_uri(facts.uri);
  if (!identity) {
    throw FailedPreconditionError(str("certificate ", quoted(path), " names ", quoted(facts.uri),
                                      "; a task's names cohort://<cluster>/<job>/<index>"));
  }
  if (self && identity->task != *self) {
    throw FailedPreconditionError(
        str("certificate ", quoted(path), " is ", identity->task, "'s, but this is ", *self));
  }
  identity_ = *identity;
}

void Security::check_address(const std::string& address, bool is_loopback) const {
  if (mode_ == Mode::kTls || is_loopback || credentials_.insecure) return;
  if (mode_ == Mode::kToken) {
    throw FailedPreconditionError(
        str("will not listen at ", address,
            ": a token can be read and used by whoever sees the network, ",
            "so token_file is for loopback addresses", kWhatToDo));
  }
  throw FailedPreconditionError(str("will not listen at ", address,
                                    ": it is not loopback, and nothing would prove who calls",
                                    kWhatToDo));
}

void Security::check_peer_address(const std::string& address) const {
  if (mode_ == Mode::kTls || credentials_.insecure || is_loopback_address(address)) return;
  throw FailedPreconditionError(str("will not connect to ", address,
                                    ": it is not loopback, and nothing would prove who answers",
                                    kWhatToDo));
}

TaskId Security::task_of(std::string_view uri, const std::string& address) const {
  const std::optional<ClusterIdentity> identity = parse_identity_uri(uri);
  if (!identity) {
    throw UnauthenticatedError(
        str("the certificate of ", address, " names no task: ", quoted(uri.substr(0, 256))));
  }
  if (identity->cluster != identity_.cluster) {
    throw UnauthenticatedError(str(address, " is ", identity->task, " of cluster '",
                                   identity->cluster, "'; this is cluster '", identity_.cluster,
                                   "'"));
  }
  return identity->task;
}

bool Security::is_token(std::string_view token) const {
  return token.size() == token_.size() &&
         CRYPTO_memcmp(token.data(), token_.data(), token_.size()) == 0;
}

bool is_loopback_address(std::string_view address) {
  if (address.starts_with("unix:") || address.starts_with("[::1]:")) return true;
  const std::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost") return true;
  // 127.0.0.0/8, as four numbers: "127.example.com" is somewhere else.
  return host.starts_with("127.") && std::count(host.begin(), host.end(), '.') == 3 &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace internal::security
}  // namespace cohort
