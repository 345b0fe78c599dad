#include "bench/rpc_peers.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cohort::bench {
namespace {

// Of the certificates, as the side that checks names knows it.
constexpr char kHost[] = "localhost";

class TakeReactor : public grpc::ServerGenericBidiReactor {
 public:
  TakeReactor() { StartRead(&in_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    in_.Clear();
    const grpc::Slice nothing;
    out_ = grpc::ByteBuffer(&nothing, 1);
    StartWriteAndFinish(&out_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;
};

class PeerService : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new TakeReactor;
  }
};

class GrpcPeer : public Server {
 public:
  explicit GrpcPeer(const TlsFiles& tls) {
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (!tls.key.empty()) {
      grpc::SslServerCredentialsOptions options(
          GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
      options.pem_root_certs = tls.ca;
      options.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
      credentials = grpc::SslServerCredentials(options);
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterCallbackGenericService(&service_);
    builder.SetMaxReceiveMessageSize(-1);
    server_ = builder.BuildAndStart();
    if (!server_) throw std::runtime_error("gRPC's server does not start");
  }
  std::string address() const override { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = 0;
  PeerService service_;
  std::unique_ptr<grpc::Server> server_;
};

class GrpcClient : public Client {
 public:
  GrpcClient(const std::string& address, const TlsFiles& tls, bool on_queue)
      : stub_(channel(address, tls)), on_queue_(on_queue) {}
  void call(const char* data, size_t size) override {
    const grpc::Slice slice(data, size, grpc::Slice::STATIC_SLICE);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    const grpc::Status status =
        on_queue_ ? by_queue(context, request, reply) : by_callback(context, request, reply);
    if (!status.ok()) throw std::runtime_error(status.error_message());
  }

 private:
  static std::shared_ptr<grpc::Channel> channel(const std::string& address, const TlsFiles& tls) {
    if (tls.key.empty()) return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(kHost);
    return grpc::CreateCustomChannel(
        address, grpc::SslCredentials({tls.ca, tls.key, tls.certificate}), arguments);
  }
  grpc::Status by_queue(grpc::ClientContext& context, const grpc::ByteBuffer& request,
                        grpc::ByteBuffer& reply) {
    grpc::Status status;
    const auto call = stub_.PrepareUnaryCall(&context, "/bench/take", request, &queue_);
    call->StartCall();
    call->Finish(&reply, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return status;
  }
  grpc::Status by_callback(grpc::ClientContext& context, const grpc::ByteBuffer& request,
                           grpc::ByteBuffer& reply) {
    std::promise<grpc::Status> done;
    stub_.UnaryCall(&context, "/bench/take", {}, &request, &reply,
                    [&](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  grpc::GenericStub stub_;
  const bool on_queue_;
  grpc::CompletionQueue queue_;
};

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

void send_all(int socket, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
    if (sent <= 0) fail("send");
    data += sent;
    size -= static_cast<size_t>(sent);
  }
}

// False at the end of the connection.
bool receive_all(int socket, char* data, size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket, data, size, 0);
    if (got == 0) return false;
    if (got < 0) fail("recv");
    data += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

int unix_socket(const std::string& path, sockaddr_un& address) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) fail("socket");
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error(path + " is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return socket;
}

// One connection; a message is its size and its bytes, the answer one byte.
class SocketPeer : public Server {
 public:
  explicit SocketPeer(const std::string& path) : path_(path) {
    sockaddr_un address{};
    socket_ = unix_socket(path, address);
    if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket_, 1) != 0) {
      fail("listen");
    }
    thread_ = std::thread([this] { serve(); });
  }
  ~SocketPeer() override {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  std::string address() const override { return path_; }

 private:
  void serve() {
    const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    std::vector<char> bytes;
    uint64_t size = 0;
    while (receive_all(connection, reinterpret_cast<char*>(&size), sizeof size)) {
      bytes.resize(size);
      if (!receive_all(connection, bytes.data(), size)) break;
      send_all(connection, "", 1);
    }
    ::close(connection);
  }

  const std::string path_;
  int socket_ = -1;
  std::thread thread_;
};

class SocketClient : public Client {
 public:
  explicit SocketClient(const std::string& path) {
    sockaddr_un address{};
    socket_ = unix_socket(path, address);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      fail("connect");
    }
  }
  ~SocketClient() override { ::close(socket_); }
  void call(const char* data, size_t size) override {
    const uint64_t length = size;
    send_all(socket_, reinterpret_cast<const char*>(&length), sizeof length);
    send_all(socket_, data, size);
    char answer = 0;
    if (!receive_all(socket_, &answer, 1)) throw std::runtime_error("the server is gone");
  }

 private:
  int socket_ = -1;
};

}  // namespace

std::unique_ptr<Server> make_grpc_server(const TlsFiles& tls) {
  return std::make_unique<GrpcPeer>(tls);
}
std::unique_ptr<Server> make_socket_server(const std::string& path) {
  return std::make_unique<SocketPeer>(path);
}
std::unique_ptr<Client> make_grpc_client(const std::string& address, const TlsFiles& tls,
                                         bool on_queue) {
  return std::make_unique<GrpcClient>(address, tls, on_queue);
}
std::unique_ptr<Client> make_socket_client(const std::string& path) {
  return std::make_unique<SocketClient>(path);
}

}  // namespace cohort::bench
