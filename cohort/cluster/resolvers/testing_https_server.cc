#include "cohort/cluster/resolvers/testing_https_server.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <stdexcept>

namespace cohort::internal {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("the test's server: ") + what);
}

template <class Object>
using Owned = std::unique_ptr<Object, void (*)(Object*)>;
using Key = Owned<EVP_PKEY>;
using Certificate = Owned<X509>;

// Signed by itself, so that it is its own authority.
Certificate make_certificate(EVP_PKEY* key, const std::string& address) {
  Certificate certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  const std::string alternative = "IP:" + address;
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative.c_str());
  require(extension != nullptr, "no alternative name");
  X509_add_ext(certificate.get(), extension, -1);
  X509_EXTENSION_free(extension);
  require(X509_sign(certificate.get(), key, EVP_sha256()) > 0, "cannot sign");
  return certificate;
}

std::string make_folder() {
  std::string folder = (std::filesystem::temp_directory_path() / "https_server_XXXXXX").string();
  require(mkdtemp(folder.data()) != nullptr, "no folder");
  return folder;
}

// "Name: value" lines; names in small letters.
std::map<std::string, std::string> parse_headers(std::istream& lines) {
  std::map<std::string, std::string> headers;
  for (std::string line; std::getline(lines, line) && line != "\r";) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    headers[name] = line.substr(colon + 2, line.size() - colon - 3);
  }
  return headers;
}

// `read` gives what has come, "" at the end.
bool read_request(const std::function<std::string()>& read, HttpsServer::Request& request) {
  std::string text;
  size_t end = std::string::npos;
  while ((end = text.find("\r\n\r\n")) == std::string::npos) {
    const std::string more = read();
    if (more.empty()) return false;
    text += more;
  }
  std::istringstream lines(text.substr(0, end + 4));
  lines >> request.method >> request.target;
  std::string rest;
  std::getline(lines, rest);
  request.headers = parse_headers(lines);
  request.body = text.substr(end + 4);
  const auto length = request.headers.find("content-length");
  const size_t wanted = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (request.body.size() < wanted) {
    const std::string more = read();
    if (more.empty()) return false;
    request.body += more;
  }
  return true;
}

std::string written(const HttpResponse& response) {
  std::ostringstream out;
  out << "HTTP/1.1 " << response.status << " X\r\nContent-Length: " << response.body.size()
      << "\r\nConnection: close\r\n\r\n"
      << response.body;
  return out.str();
}

}  // namespace

class HttpsServer::Tls {
 public:
  Tls(const std::string& address, const std::string& ca_file) {
    const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const Certificate certificate = make_certificate(key.get(), address);
    require(SSL_CTX_use_certificate(context_.get(), certificate.get()) == 1, "certificate");
    require(SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1, "key");
    std::FILE* file = std::fopen(ca_file.c_str(), "w");
    require(file != nullptr, "cannot make the file of the authority");
    const bool written = PEM_write_X509(file, certificate.get()) == 1;
    require(std::fclose(file) == 0 && written, "cannot write the authority");
  }
  SSL_CTX* context() { return context_.get(); }

 private:
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_{SSL_CTX_new(TLS_server_method()),
                                                        SSL_CTX_free};
};

HttpsServer::HttpsServer(Answer answer) : HttpsServer(std::move(answer), Options{}) {}

HttpsServer::HttpsServer(Answer answer, const Options& options)
    : answer_(std::move(answer)), folder_(make_folder()), ca_file_(folder_ + "/ca.crt") {
  if (options.tls) tls_ = std::make_unique<Tls>(options.certified_address, ca_file_);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(name);
  require(bind(listener_, reinterpret_cast<sockaddr*>(&name), length) == 0, "cannot bind");
  require(listen(listener_, 16) == 0, "cannot listen");
  getsockname(listener_, reinterpret_cast<sockaddr*>(&name), &length);
  address_ = std::string(options.tls ? "https" : "http") +
             "://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  thread_ = std::thread([this] { serve(); });
}

HttpsServer::~HttpsServer() {
  shutdown(listener_, SHUT_RDWR);  // accept returns
  thread_.join();
  close(listener_);
  std::filesystem::remove_all(folder_);
}

int HttpsServer::num_requests() const {
  const std::scoped_lock lock(mutex_);
  return num_requests_;
}

std::string HttpsServer::last_target() const {
  const std::scoped_lock lock(mutex_);
  return last_target_;
}

void HttpsServer::serve() {
  // A client that has gone must not end the test.
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  for (;;) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    answer_one(connection);
    close(connection);
  }
}

void HttpsServer::answer_one(int connection) {
  Owned<SSL> tls(nullptr, SSL_free);
  if (tls_) {
    tls.reset(SSL_new(tls_->context()));
    SSL_set_fd(tls.get(), connection);
    if (SSL_accept(tls.get()) != 1) return;  // the client did not trust us
  }
  const auto read = [&] {
    std::string bytes(4096, '\0');
    const int size = static_cast<int>(bytes.size());
    const auto got = tls ? SSL_read(tls.get(), bytes.data(), size)
                         : static_cast<int>(recv(connection, bytes.data(), bytes.size(), 0));
    bytes.resize(static_cast<size_t>(std::max(got, 0)));
    return bytes;
  };
  Request request;
  if (!read_request(read, request)) return;
  {
    const std::scoped_lock lock(mutex_);
    ++num_requests_;
    last_target_ = request.target;
  }
  const std::string response = written(answer_(request));
  if (tls) {
    SSL_write(tls.get(), response.data(), static_cast<int>(response.size()));
    SSL_shutdown(tls.get());
  } else {
    send(connection, response.data(), response.size(), MSG_NOSIGNAL);
  }
}

}  // namespace cohort::internal
