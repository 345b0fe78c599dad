// One request to an HTTPS API, by libcurl.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace cohort::internal {

// Nothing of headers and body is ever in an error: they hold tokens.
struct HttpRequest {
  std::string url;
  std::vector<std::string> headers = {};
  std::optional<std::string> body = std::nullopt;  // JSON, to be posted; nothing: GET
  std::string ca_file = "";                        // empty: the system's authorities
  std::chrono::steady_clock::time_point deadline;  // for all of the call
  bool plain_http = false;                         // http:// is right, too
  bool direct = true;                              // by no proxy
};

struct HttpResponse {
  long status = 0;
  std::string body;
};

// At most 64 MB are read; redirections are answers like others.
// Errors, all with the URL: DeadlineExceeded; Unavailable (no connection); Unauthenticated (the
// server has no certificate by the authorities); InvalidArgument (a wrong URL, a CA file that
// cannot be read); ResourceExhausted (a longer answer).
HttpResponse http_call(const HttpRequest& request);

// For a part of an URL: letters, digits and -._~ stay.
std::string url_escaped(const std::string& text);

}  // namespace cohort::internal
