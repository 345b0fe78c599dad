#include "cohort/cluster/security/certificate.h"

#include "cohort/cluster/security/openssl_handles.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::security {
namespace {

[[noreturn]] void bad_certificate(const std::string& name, const std::string& problem) {
  throw FailedPreconditionError(str("certificate ", quoted(name), " ", problem,
                                    ". `cohort cluster certificates` makes new ones"));
}

X509Ptr first_certificate(const std::string& pem) {
  return X509Ptr(PEM_read_bio_X509(read_only(pem).get(), nullptr, nullptr, nullptr));
}

std::string only_uri(X509* certificate, const std::string& name) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string uri;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* entry = sk_GENERAL_NAME_value(names.get(), i);
    if (entry->type != GEN_URI) continue;
    if (!uri.empty()) bad_certificate(name, "names several URIs; a task's names one");
    uri.assign(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(entry->d.uniformResourceIdentifier)),
        ASN1_STRING_length(entry->d.uniformResourceIdentifier));
  }
  return uri;
}

std::string printed_time(const ASN1_TIME* time) {
  const Bio out(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(out.get(), time);
  return contents(out.get());
}

void check_signature(X509* certificate, const std::string& ca, const std::string& name) {
  const Store store(X509_STORE_new());
  const Bio authorities = read_only(ca);
  int count = 0;
  while (X509Ptr authority{PEM_read_bio_X509(authorities.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(store.get(), authority.get());
    ++count;
  }
  ERR_clear_error();  // the end of the file counts as one
  if (count == 0) throw FailedPreconditionError("the ca file holds no certificate in PEM");
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr);
  if (X509_verify_cert(context.get()) == 1) return;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  bad_certificate(name, str("is refused: ", X509_verify_cert_error_string(error)));
}

}  // namespace

CertificateFacts check_certificate(const std::string& certificate, const std::string& key,
                                   const std::string& ca, const std::string& name) {
  const X509Ptr parsed = first_certificate(certificate);
  if (!parsed) bad_certificate(name, "is no certificate in PEM: " + openssl_reason());
  const Key parsed_key(PEM_read_bio_PrivateKey(read_only(key).get(), nullptr, nullptr, nullptr));
  if (!parsed_key)
    bad_certificate(name, "has a key file without a key in PEM: " + openssl_reason());
  if (X509_check_private_key(parsed.get(), parsed_key.get()) != 1) {
    ERR_clear_error();
    bad_certificate(name, "does not belong to the key in the key file");
  }
  CertificateFacts facts{.uri = only_uri(parsed.get(), name),
                         .expires = printed_time(X509_get0_notAfter(parsed.get()))};
  if (X509_cmp_current_time(X509_get0_notAfter(parsed.get())) < 0) {
    bad_certificate(name, "has expired: " + facts.expires);
  }
  if (X509_cmp_current_time(X509_get0_notBefore(parsed.get())) > 0) {
    bad_certificate(name, "is valid only from " + printed_time(X509_get0_notBefore(parsed.get())) +
                              "; is this host's clock right?");
  }
  check_signature(parsed.get(), ca, name);
  return facts;
}

}  // namespace cohort::internal::security
