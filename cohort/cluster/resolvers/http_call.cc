#include "cohort/cluster/resolvers/http_call.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <memory>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

using Handle = std::unique_ptr<CURL, void (*)(CURL*)>;
using Headers = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

// Once a process; libcurl 7.84 and later lock it themselves.
void start_curl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) throw ResourceExhaustedError("libcurl cannot be started");
}

Headers make_headers(const HttpRequest& request) {
  Headers headers(nullptr, curl_slist_free_all);
  const auto add = [&](const std::string& header) {
    curl_slist* longer = curl_slist_append(headers.get(), header.c_str());
    if (longer == nullptr) throw ResourceExhaustedError("libcurl has no memory for a header");
    headers.release();
    headers.reset(longer);
  };
  for (const std::string& header : request.headers) add(header);
  if (request.body) add("Content-Type: application/json");
  return headers;
}

// libcurl's callback: a number other than `size` ends the transfer. It must not throw.
size_t append(char* data, size_t, size_t size, void* out) noexcept {
  auto& body = *static_cast<std::string*>(out);
  if (size > kMostBytes - body.size()) return 0;
  try {
    body.append(data, size);
  } catch (...) {
    return 0;
  }
  return size;
}

[[noreturn]] void throw_failure(CURLcode code, const std::string& url, const std::string& detail) {
  const std::string text =
      str(quoted(url), ": ", detail.empty() ? curl_easy_strerror(code) : detail.c_str());
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      throw DeadlineExceededError(text);
    case CURLE_PEER_FAILED_VERIFICATION:
      throw UnauthenticatedError(text);
    case CURLE_WRITE_ERROR:
      throw ResourceExhaustedError(
          str(quoted(url), ": an answer of more than ", kMostBytes, " bytes"));
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      throw InvalidArgumentError(text);
    default:
      throw UnavailableError(text);
  }
}

// A server that goes away while OpenSSL writes to it must not end the program. libcurl would change
// the whole process's handler, so the signal is held off this thread, and taken if it came.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before_);
  }
  ~NoBrokenPipe() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec none{};
    while (sigtimedwait(&broken_pipe_, nullptr, &none) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t broken_pipe_;
  sigset_t before_;
};

}  // namespace

HttpResponse http_call(const HttpRequest& request) {
  using std::chrono::milliseconds;
  start_curl();
  const NoBrokenPipe no_broken_pipe;  // as long as the handle lives: closing TLS writes
  const Handle curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) throw ResourceExhaustedError("libcurl cannot start a transfer");
  const auto left =
      std::chrono::ceil<milliseconds>(request.deadline - std::chrono::steady_clock::now());
  if (left <= milliseconds(0)) {  // 0 would be no limit
    throw DeadlineExceededError(str(quoted(request.url), ": the deadline had passed"));
  }
  const Headers headers = make_headers(request);
  HttpResponse response;
  std::array<char, CURL_ERROR_SIZE> detail{};
  const auto set = [&](CURLoption option, auto value) {
    curl_easy_setopt(curl.get(), option, value);
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, request.plain_http ? "http,https" : "https");
  set(CURLOPT_NOSIGNAL, 1L);
  // libcurl keeps milliseconds in 32 bits.
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::min<int64_t>(left.count(), INT32_MAX)));
  set(CURLOPT_HTTPHEADER, headers.get());
  if (request.body) {
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body->size()));
    set(CURLOPT_POSTFIELDS, request.body->c_str());
  }
  if (!request.ca_file.empty()) {
    set(CURLOPT_CAINFO, request.ca_file.c_str());
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // those of the file alone
  }
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (request.direct) set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_WRITEFUNCTION, append);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&response.body));
  set(CURLOPT_ERRORBUFFER, detail.data());
  const CURLcode code = curl_easy_perform(curl.get());
  if (code != CURLE_OK) throw_failure(code, request.url, detail.data());
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &response.status);
  return response;
}

std::string url_escaped(const std::string& text) {
  constexpr std::string_view kPlain = "-._~";
  constexpr char kHexDigits[] = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || kPlain.find(c) != kPlain.npos) {
      result += c;
    } else {
      result += '%';
      result += kHexDigits[byte >> 4];
      result += kHexDigits[byte & 15];
    }
  }
  return result;
}

}  // namespace cohort::internal
