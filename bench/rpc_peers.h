// What a call between two processes costs without Cohort: gRPC's own and a unix socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace cohort::bench {

// PEM texts of both ends; empty: no TLS.
struct TlsFiles {
  std::string ca;
  std::string certificate;
  std::string key;
};

// Takes bytes and answers with none, until it is destroyed.
class Server {
 public:
  virtual ~Server() = default;
  virtual std::string address() const = 0;
};
std::unique_ptr<Server> make_grpc_server(const TlsFiles& tls);
// At a path.
std::unique_ptr<Server> make_socket_server(const std::string& path);

// Calls such a server, one call at a time.
class Client {
 public:
  virtual ~Client() = default;
  // Returns when the answer is there.
  virtual void call(const char* data, size_t size) = 0;
};
// on_queue: by a completion queue, else by a callback.
std::unique_ptr<Client> make_grpc_client(const std::string& address, const TlsFiles& tls,
                                         bool on_queue);
std::unique_ptr<Client> make_socket_client(const std::string& path);

}  // namespace cohort::bench
