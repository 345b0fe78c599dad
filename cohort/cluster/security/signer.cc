#include "cohort/cluster/security/signer.h"

#include <openssl/ec.h>
#include <openssl/rand.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "cohort/cluster/security/openssl_handles.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::security {
namespace {

constexpr std::chrono::seconds kAuthorityLifetime = std::chrono::days(3660);
constexpr int kSerialBits = 127;
constexpr int kVersion3 = 2;  // as X.509 counts

void must(bool succeeded, const char* what) {
  if (!succeeded) throw InternalError(str("OpenSSL cannot ", what, ": ", openssl_reason()));
}

Key new_key() {
  Key key(EVP_EC_gen("P-256"));
  must(key != nullptr, "make a key");
  return key;
}

std::string authority_name(const std::string& cluster) { return "cohort cluster " + cluster; }

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  must(extension != nullptr, "make an extension");
  must(X509_add_ext(certificate, extension.get(), -1) == 1, "add an extension");
}

void set_common_name(X509_NAME* name, const std::string& text) {
  must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(text.data()),
                                  static_cast<int>(std::min<size_t>(text.size(), 64)), -1, 0) == 1,
       "set a name");
}

X509Ptr new_certificate(EVP_PKEY* key, const std::string& common_name,
                        std::chrono::seconds starts_after, std::chrono::seconds lifetime) {
  X509Ptr certificate(X509_new());
  must(certificate != nullptr, "make a certificate");
  X509_set_version(certificate.get(), kVersion3);
  const std::unique_ptr<BIGNUM, FreeWith<BN_free>> serial(BN_new());
  must(serial && BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
           BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) != nullptr,
       "make a serial number");
  const std::time_t now = std::time(nullptr);
  const std::time_t start = now + starts_after.count();
  const std::time_t end = now + lifetime.count();
  must(ASN1_TIME_set(X509_getm_notBefore(certificate.get()), start) != nullptr &&
           ASN1_TIME_set(X509_getm_notAfter(certificate.get()), end) != nullptr,
       "set a date");
  must(X509_set_pubkey(certificate.get(), key) == 1, "set a key");
  set_common_name(X509_get_subject_name(certificate.get()), common_name);
  return certificate;
}

// The alternative names in the syntax of OpenSSL's configuration. A host comes from the command
// line, and a comma in it would begin a name of another kind.
std::string alternative_names(const SigningRequest& request) {
  std::string names = "URI:" + request.uri;
  for (const std::string& host : request.hosts) {
    const bool is_host =
        !host.empty() && host.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:") ==
                             std::string::npos;
    if (!is_host) throw InvalidArgumentError(str(quoted(host), " is no host's name or address"));
    const bool is_address = host.find(':') != std::string::npos ||
                            host.find_first_not_of("0123456789.") == std::string::npos;
    names += (is_address ? ",IP:" : ",DNS:") + host;
  }
  return names;
}

std::string pem_of(X509* certificate) {
  const Bio out(BIO_new(BIO_s_mem()));
  must(PEM_write_bio_X509(out.get(), certificate) == 1, "write a certificate");
  return contents(out.get());
}

std::string pem_of(EVP_PKEY* key) {
  const Bio out(BIO_new(BIO_s_mem()));
  must(PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
       "write a key");
  return contents(out.get());
}

}  // namespace

struct Signer::Parts {
  Key key;
  X509Ptr certificate;
};

Signer::Signer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Signer::~Signer() = default;
Signer::Signer(Signer&&) noexcept = default;

Signer Signer::make(const std::string& cluster) {
  auto parts = std::make_unique<Parts>();
  parts->key = new_key();
  parts->certificate = new_certificate(parts->key.get(), authority_name(cluster),
                                       std::chrono::seconds(-60), kAuthorityLifetime);
  X509* const certificate = parts->certificate.get();
  must(X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1, "set a name");
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
  must(X509_sign(certificate, parts->key.get(), EVP_sha256()) > 0, "sign");
  return Signer(std::move(parts));
}

Signer Signer::from_pem(const std::string& certificate, const std::string& key,
                        const std::string& cluster, const std::string& name) {
  auto parts = std::make_unique<Parts>();
  parts->certificate.reset(
      PEM_read_bio_X509(read_only(certificate).get(), nullptr, nullptr, nullptr));
  parts->key.reset(PEM_read_bio_PrivateKey(read_only(key).get(), nullptr, nullptr, nullptr));
  if (!parts->certificate || !parts->key ||
      X509_check_private_key(parts->certificate.get(), parts->key.get()) != 1 ||
      X509_check_ca(parts->certificate.get()) != 1) {
    ERR_clear_error();
    throw FailedPreconditionError(str(quoted(name), " and its key are no authority"));
  }
  char common_name[128] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(parts->certificate.get()), NID_commonName,
                            common_name, sizeof common_name);
  if (common_name != authority_name(cluster).substr(0, 64)) {
    throw FailedPreconditionError(str(quoted(name), " is the authority of ", quoted(common_name),
                                      ", not of cluster ", quoted(cluster),
                                      ". Use another directory for each cluster"));
  }
  return Signer(std::move(parts));
}

SignedCertificate Signer::sign(const SigningRequest& request) const {
  const Key key = new_key();
  const X509Ptr made =
      new_certificate(key.get(), request.common_name, request.starts_after, request.lifetime);
  X509* const issuer = parts_->certificate.get();
  must(X509_set_issuer_name(made.get(), X509_get_subject_name(issuer)) == 1, "set a name");
  add_extension(made.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made.get(), issuer, NID_key_usage, "critical,digitalSignature");
  add_extension(made.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(made.get(), issuer, NID_subject_key_identifier, "hash");
  add_extension(made.get(), issuer, NID_authority_key_identifier, "keyid");
  add_extension(made.get(), issuer, NID_subject_alt_name, alternative_names(request));
  must(X509_sign(made.get(), parts_->key.get(), EVP_sha256()) > 0, "sign");
  return {.certificate_pem = pem_of(made.get()), .key_pem = pem_of(key.get())};
}

std::string Signer::certificate_pem() const { return pem_of(parts_->certificate.get()); }
std::string Signer::key_pem() const { return pem_of(parts_->key.get()); }

}  // namespace cohort::internal::security
