#include "cohort/cluster/grpc/grpc_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "cohort/cluster/grpc/byte_buffers.h"
#include "cohort/cluster/grpc/callback_threads.h"
#include "cohort/cluster/grpc/grpc_credentials.h"
#include "cohort/cluster/grpc/grpc_log.h"
#include "cohort/cluster/grpc/grpc_time.h"
#include "cohort/cluster/grpc/hand_over.h"
#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal::rpc {
namespace {

constexpr std::chrono::milliseconds kLeaveTime{300};
constexpr int kMaxMetadataBytes = 8 << 10;

// One call. gRPC keeps it until OnDone.
class ServerReactor : public grpc::ServerGenericBidiReactor {
 public:
  ServerReactor(Dispatcher& dispatcher, const security::Security& security, NewPeers& new_peers,
                grpc::GenericCallbackServerContext& context) {
    const HandOver hand_over(this);
    std::string_view method = context.method();
    if (!method.empty()) method.remove_prefix(1);  // "/service/method"
    Peer peer{.address = context.peer()};
    new_peers.has_called(peer.address);
    std::exception_ptr refused;
    try {
      peer.task = authenticated_task(security, context);
    } catch (...) {
      refused = std::current_exception();
    }
    const auto answer = [this](MessageWriter writer) { send(std::move(writer)); };
    session_ = refused ? dispatcher.refuse(method, peer, refused, answer)
                       : dispatcher.begin(method, peer, to_steady(context.raw_deadline()), answer);
    read_on();
  }

  void OnReadDone(bool ok) override {
    const HandOver hand_over(this);
    if (!ok) return session_->end_of_request();
    for_each_slice(in_, [this](std::string_view bytes) { session_->append(bytes); });
    in_.Clear();
    read_on();
  }

  void OnWriteDone(bool ok) override {
    const HandOver hand_over(this);
    if (!ok) return Finish(grpc::Status::CANCELLED);
    writer_.advance();
    write();
  }

  void OnCancel() override {
    const HandOver hand_over(this);
    if (session_->cancel()) Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    HandOver(this).last();
    delete this;
  }

 private:
  // The last thing that a callback does: the next piece may come on another thread meanwhile.
  void read_on() {
    if (!session_->wants_more()) return;
    { const HandOver given(this); }
    StartRead(&in_);
  }

  void send(MessageWriter writer) {
    writer_ = std::move(writer);
    write();
  }

  void write() {
    if (writer_.piece().empty()) {  // not even an error could be encoded
      return Finish(grpc::Status(grpc::RESOURCE_EXHAUSTED, "no memory for an answer"));
    }
    out_ = to_byte_buffer(writer_.piece());
    const bool is_last = writer_.is_last();
    { const HandOver given(this); }  // from here on another thread may end the call
    if (is_last) {
      StartWriteAndFinish(&out_, grpc::WriteOptions(), grpc::Status::OK);
    } else {
      StartWrite(&out_);
    }
  }

  std::shared_ptr<Session> session_;
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;
  MessageWriter writer_;
};

class GenericService : public grpc::CallbackGenericService {
 public:
  GenericService(Dispatcher& dispatcher, std::shared_ptr<const security::Security> security,
                 NewPeers& new_peers)
      : dispatcher_(dispatcher), security_(std::move(security)), new_peers_(new_peers) {
    { const HandOver given(this); }  // with all that it refers to
  }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    { const HandOver taken(this); }
    return new ServerReactor(dispatcher_, *security_, new_peers_, *context);
  }

 private:
  Dispatcher& dispatcher_;
  const std::shared_ptr<const security::Security> security_;
  NewPeers& new_peers_;
};

void configure(grpc::ServerBuilder& builder, const TransportSettings& settings) {
  const auto set = [&](const char* name, auto value) {
    builder.AddChannelArgument(name, to_argument(static_cast<int64_t>(value)));
  };
  set(GRPC_ARG_KEEPALIVE_TIME_MS, settings.keepalive_time.count());
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, settings.keepalive_timeout.count());
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Clients ping at keepalive_time; half of that leaves room for timers that are early.
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, settings.keepalive_time.count() / 2);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, settings.handshake_timeout.count());
  set(GRPC_ARG_MAX_CONNECTION_IDLE_MS, std::chrono::milliseconds(settings.max_idle).count());
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, settings.max_calls_per_connection);
  set(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  set(GRPC_ARG_ALLOW_REUSEPORT, 0);
  set(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMaxPieceBytes));
}

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(Dispatcher& dispatcher, std::unique_ptr<Listener> listener, const GrpcServerOptions& options)
      : dispatcher_(dispatcher),
        listener_(std::move(listener)),
        handshakes_(*listener_),
        service_(std::make_unique<GenericService>(dispatcher, options.security,
                                                  listener_->new_peers())) {
    options.security->check_address(listener_->address(), listener_->is_loopback());
    hold_callback_threads();
    grpc::ServerBuilder builder;
    configure(builder, options.settings);
    builder.RegisterCallbackGenericService(service_.get());
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        server_credentials(*options.security, options.settings));
    server_ = builder.BuildAndStart();
    if (!server_) {
      throw FailedPreconditionError(
          str("gRPC does not start a server for ", listener_->address(), "; its own log says why"));
    }
    listener_->start([this](UniqueFd connection) {
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
      parameters.fd = connection.release();
      acceptor_->HandleNewConnection(&parameters);
    });
  }

  ~Impl() { stop(); }

  void stop() {
    const std::lock_guard lock(stop_mutex_);
    listener_->stop();
    dispatcher_.stop();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kLeaveTime);
    server_.reset();
  }

  const Listener& listener() const { return *listener_; }

 private:
  Dispatcher& dispatcher_;
  const std::unique_ptr<Listener> listener_;
  const WatchedHandshakes handshakes_;
  const std::unique_ptr<grpc::CallbackGenericService> service_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex stop_mutex_;
};

GrpcServer::GrpcServer(Dispatcher& dispatcher, std::unique_ptr<Listener> listener,
                       const GrpcServerOptions& options)
    : impl_(std::make_unique<Impl>(dispatcher, std::move(listener), options)) {}
GrpcServer::~GrpcServer() = default;

const std::string& GrpcServer::address() const { return impl_->listener().address(); }
const Listener& GrpcServer::listener() const { return impl_->listener(); }
void GrpcServer::stop() { impl_->stop(); }

}  // namespace cohort::internal::rpc
