#include "cohort/cluster/metrics_server.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"

namespace cohort::internal {
namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr char kPlain[] = "text/plain; charset=utf-8";
constexpr char kPrometheus[] = "text/plain; version=0.0.4; charset=utf-8";

std::string http_answer(std::string_view status, std::string_view body, bool with_body = true,
                        std::string_view type = kPlain) {
  return str("HTTP/1.1 ", status, "\r\nContent-Type: ", type, "\r\nContent-Length: ", body.size(),
             "\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n", with_body ? body : "");
}

struct RequestLine {
  std::string_view method;
  std::string_view path;  // without its query
};
// Nothing where it is none of HTTP/1.
std::optional<RequestLine> parse_request_line(std::string_view request) {
  std::string_view line = request.substr(0, request.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const bool printable =
      std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c < '\x7f'; });
  if (!printable || !target.starts_with('/') || target.find(' ') != std::string_view::npos ||
      !line.substr(last + 1).starts_with("HTTP/1.")) {
    return std::nullopt;
  }
  return RequestLine{line.substr(0, first), target.substr(0, target.find('?'))};
}

std::string answer_to(std::string_view request, const std::function<std::string()>& text) {
  const std::optional<RequestLine> line = parse_request_line(request);
  if (!line) return http_answer("400 Bad Request", "This is no request of HTTP/1.\n");
  const bool is_head = line->method == "HEAD";
  if (line->method != "GET" && !is_head) {
    return http_answer("405 Method Not Allowed", "Only GET and HEAD are answered.\n");
  }
  if (line->path != "/metrics") {
    return http_answer("404 Not Found", "There is only /metrics.\n", !is_head);
  }
  try {
    return http_answer("200 OK", text(), !is_head, kPrometheus);
  } catch (const std::exception& error) {
    log_warning("GET /metrics: ", error.what());
    return http_answer("500 Internal Server Error", "The log says why.\n", !is_head);
  }
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

// Reads a request, writes the answer, and lets the client take it: one that still sends would lose
// the answer if its connection were closed at once.
class MetricsServer::Connection {
 public:
  Connection(UniqueFd socket, Time deadline) : socket_(std::move(socket)), deadline_(deadline) {}

  int socket() const { return socket_.get(); }
  Time deadline() const { return deadline_; }
  short events() const { return state_ == State::kWriting ? POLLOUT : POLLIN; }

  // False: it has ended.
  bool go_on(const MetricsServer& server) {
    if (state_ == State::kReading && !read(server)) return false;
    if (state_ == State::kWriting && !write()) return false;
    return state_ != State::kEnding || drain();
  }
  void expire() {
    if (state_ != State::kReading) return;
    answer_ = http_answer("408 Request Timeout", "The request did not come in time.\n");
    state_ = State::kWriting;
    write();  // as much as goes at once
  }

 private:
  enum class State { kReading, kWriting, kEnding };

  bool read(const MetricsServer& server) {
    std::array<char, 4096> bytes;
    const ssize_t size = ::recv(socket(), bytes.data(), bytes.size(), 0);
    if (size < 0) return would_block();
    if (size == 0) return false;
    request_.append(bytes.data(), static_cast<size_t>(size));
    if (request_.find("\r\n\r\n") != std::string::npos ||
        request_.find("\n\n") != std::string::npos) {
      answer_ = answer_to(request_, server.text_);
    } else if (request_.size() >= server.limits_.max_request_bytes) {
      answer_ = http_answer("431 Request Header Fields Too Large", "The request is too long.\n");
    } else {
      return true;
    }
    state_ = State::kWriting;
    return true;
  }

  bool write() {
    const ssize_t size =
        ::send(socket(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
    if (size < 0) return would_block();
    sent_ += static_cast<size_t>(size);
    if (sent_ < answer_.size()) return true;
    ::shutdown(socket(), SHUT_WR);
    state_ = State::kEnding;
    return true;
  }

  bool drain() {
    std::array<char, 4096> bytes;
    const ssize_t size = ::recv(socket(), bytes.data(), bytes.size(), 0);
    return size < 0 ? would_block() : size > 0;
  }

  const UniqueFd socket_;
  const Time deadline_;
  State state_ = State::kReading;
  std::string request_;
  std::string answer_;
  size_t sent_ = 0;
};

MetricsServer::MetricsServer(UniqueFd listener, std::function<std::string()> text,
                             const MetricsLimits& limits)
    : text_(std::move(text)), limits_(limits), listener_(std::move(listener)) {
  const rpc::SocketAddress address = rpc::listening_address(listener_.get());
  address_ = rpc::host_and_port(address.host, address.port);
  ::fcntl(listener_.get(), F_SETFL, ::fcntl(listener_.get(), F_GETFL) | O_NONBLOCK);
  thread_.start("to answer /metrics with", "cohort-metrics", [this] { run(); });
}

MetricsServer::~MetricsServer() { stop(); }

void MetricsServer::stop() {
  const std::lock_guard lock(stop_mutex_);
  thread_.end();
  connections_.clear();
  listener_.reset();
}

void MetricsServer::run() {
  std::vector<pollfd> watched;
  while (true) {
    Time now = std::chrono::steady_clock::now();
    const bool accepts = connections_.size() < limits_.max_connections && now >= accept_at_;
    watched.assign({thread_.stop(), {accepts ? listener_.get() : -1, POLLIN, 0}});
    for (const auto& connection : connections_) {
      watched.push_back({connection->socket(), connection->events(), 0});
    }
    if (!thread_.poll(watched, milliseconds_to_next(now))) return;
    now = std::chrono::steady_clock::now();
    size_t i = 2;
    std::erase_if(connections_, [&](const auto& connection) {
      if (watched[i++].revents != 0 && !connection->go_on(*this)) return true;
      if (now < connection->deadline()) return false;
      connection->expire();
      return true;
    });
    if (watched[1].revents != 0) accept_some(now);
  }
}

void MetricsServer::accept_some(Time now) {
  while (connections_.size() < limits_.max_connections) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      connections_.push_back(
          std::make_unique<Connection>(std::move(socket), now + limits_.timeout));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    // Descriptors or memory are short, which passes; until then the port would wake poll for
    // nothing.
    if (errno != EAGAIN) accept_at_ = now + kAcceptPause;
    return;
  }
}

int MetricsServer::milliseconds_to_next(Time now) const {
  Time next = Time::max();
  if (accept_at_ > now) next = accept_at_;
  for (const auto& connection : connections_) next = std::min(next, connection->deadline());
  if (next == Time::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

}  // namespace cohort::internal
