// A small HTTPS server for tests of resolvers: it speaks TLS with a certificate of its own, and
// answers as it is told.
//
//   HttpsServer server([](const HttpsServer::Request& request) -> HttpResponse { ... });
//   server.address();   // "https://127.0.0.1:40123"
//   server.ca_file();   // the authority of its certificate
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cohort/cluster/resolvers/http_call.h"

namespace cohort::internal {

// A connection carries one request. Thread safety: any thread; answers come on the server's.
class HttpsServer {
 public:
  struct Request {
    std::string method;
    std::string target;                          // "/api/v1/pods?limit=1"
    std::map<std::string, std::string> headers;  // names in small letters
    std::string body;
  };
  using Answer = std::function<HttpResponse(const Request&)>;

  struct Options {
    bool tls = true;
    // In the certificate; others are refused by clients.
    std::string certified_address = "127.0.0.1";
  };

  explicit HttpsServer(Answer answer);
  HttpsServer(Answer answer, const Options& options);
  ~HttpsServer();

  const std::string& address() const { return address_; }
  const std::string& ca_file() const { return ca_file_; }
  // Those that were read to their end.
  int num_requests() const;
  std::string last_target() const;

 private:
  class Tls;

  void serve();
  void answer_one(int socket);

  Answer answer_;
  std::string folder_;
  std::string ca_file_;
  std::unique_ptr<Tls> tls_;
  int listener_ = -1;
  std::string address_;
  mutable std::mutex mutex_;
  int num_requests_ = 0;
  std::string last_target_;
  std::thread thread_;
};

// What a server answers to a target, changed while it runs.
class AnswerToTarget {
 public:
  using Function = std::function<HttpResponse(const std::string& target)>;

  AnswerToTarget& operator=(Function answer) {
    const std::scoped_lock lock(mutex_);
    answer_ = std::move(answer);
    return *this;
  }
  HttpResponse operator()(const std::string& target) const {
    std::unique_lock lock(mutex_);
    const Function answer = answer_;
    lock.unlock();
    return answer(target);
  }

 private:
  mutable std::mutex mutex_;
  Function answer_;
};

// Holds whoever waits until it is opened: a server that does not answer.
class Gate {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

}  // namespace cohort::internal
