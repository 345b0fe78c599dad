#include "cohort/cluster/grpc/grpc_channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <mutex>
#include <unordered_set>
#include <utility>

#include "cohort/cluster/grpc/byte_buffers.h"
#include "cohort/cluster/grpc/callback_threads.h"
#include "cohort/cluster/grpc/grpc_credentials.h"
#include "cohort/cluster/grpc/grpc_log.h"
#include "cohort/cluster/grpc/grpc_time.h"
#include "cohort/cluster/grpc/hand_over.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/frame.h"
#include "cohort/core/error.h"

namespace cohort::internal::rpc {
namespace {

class ClientReactor;

grpc::ChannelArguments channel_arguments(const GrpcChannelOptions& options) {
  const TransportSettings& settings = options.settings;
  grpc::ChannelArguments arguments;
  const auto set = [&](const char* name, auto value) {
    arguments.SetInt(name, to_argument(static_cast<int64_t>(value)));
  };
  set(GRPC_ARG_KEEPALIVE_TIME_MS, settings.keepalive_time.count());
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, settings.keepalive_timeout.count());
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, settings.handshake_timeout.count());
  set(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  set(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A name may become known after the first call: pods and containers start in any order.
  set(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  set(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kMaxPieceBytes);
  // Callers know which calls may be repeated. Without a policy, gRPC repeats only calls of which it
  // knows that the server saw nothing: a server that is short of processor time gives a new
  // connection up before it has read from it.
  set(GRPC_ARG_ENABLE_RETRIES, 1);
  // Tasks reach each other directly: a proxy of the environment and settings out of DNS are not
  // used.
  set(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  set(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // Several tasks of one process share no connection: each proves its own identity.
  set(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (options.security->mode() == security::Security::Mode::kTls && !options.peer.job.empty()) {
    // The name that TLS asks the server for. gRPC complains if it is not one of the certificate's
    // names.
    arguments.SetSslTargetNameOverride(
        security::identity_host({options.security->identity().cluster, options.peer}));
  }
  return arguments;
}

// What a channel and its calls share.
struct ChannelState {
  explicit ChannelState(const GrpcChannelOptions& options)
      : options(options),
        server_check(std::make_shared<ServerCheck>(options.peer, options.address)),
        channel(grpc::CreateCustomChannel(
            options.address,
            channel_credentials(options.security, options.address, server_check, options.settings),
            channel_arguments(options))),
        stub(channel) {}

  // "/job:ps/task:0 at 10.0.0.1:2222".
  std::string whom() const {
    return options.peer.job.empty() ? options.address : str(options.peer, " at ", options.address);
  }

  const GrpcChannelOptions options;
  const std::shared_ptr<ServerCheck> server_check;
  const std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
  std::mutex mutex;
  std::unordered_set<ClientReactor*> calls;
  bool closed = false;
};

// One call. It deletes itself when it has ended.
class ClientReactor : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  ClientReactor(std::shared_ptr<ChannelState> state, std::string_view method, Message request,
                const CallOptions& options, std::function<void(CallResult)> done)
      : state_(std::move(state)),
        method_(method),
        timeout_(options.timeout),
        writer_({.claim = state_->options.self->claim()}, std::move(request)),
        reader_(str("answer of ", method, " from ", state_->whom()),
                [limit = options.max_reply_bytes](const Header&) {
                  return MessageReader::Limits{.bulk_bytes = limit};
                }),
        done_(std::move(done)) {
    context_.set_deadline(deadline_after(options.timeout));
    context_.set_wait_for_ready(options.wait_for_peer);
    context_.set_initial_metadata_corked(true);  // one packet with the first piece
    add_token(*state_->options.security, context_);
  }

  // The call must be listed in the state's before, so that close() finds it.
  void start() {
    grpc::GenericStub& stub = state_->stub;
    prepare(stub);
    StartCall();  // the last thing: another thread may end the call from here on
  }
  void prepare(grpc::GenericStub& stub) {
    const HandOver hand_over(this);
    {
      const UnwatchedWrites within_grpc;
      stub.PrepareBidiStreamingCall(&context_, "/" + method_, {}, this);
    }
    write();
    StartRead(&in_);
  }
  void cancel() { context_.TryCancel(); }

  void OnWriteDone(bool ok) override {
    const HandOver hand_over(this);
    if (!ok || writer_.piece().empty()) return;  // the answer says why it took no more
    writer_.advance();
    if (!writer_.piece().empty()) write();
  }

  void OnReadDone(bool ok) override {
    const HandOver hand_over(this);
    if (!ok) return;
    try {
      for_each_slice(in_, [this](std::string_view bytes) { reader_.append(bytes); });
    } catch (...) {
      error_ = std::current_exception();
      context_.TryCancel();
      return;
    }
    in_.Clear();
    { const HandOver given(this); }  // the next piece may come on another thread
    StartRead(&in_);
  }

  void OnDone(const grpc::Status& status) override {
    HandOver(this).last();
    bool closed = false;
    {
      const std::lock_guard lock(state_->mutex);
      state_->calls.erase(this);
      closed = state_->closed;
    }
    CallResult result;
    try {
      result.reply = outcome(status, closed);
    } catch (...) {
      result.error = std::current_exception();
    }
    const std::function<void(CallResult)> done = std::move(done_);
    delete this;
    done(std::move(result));
  }

 private:
  void write() {
    out_ = to_byte_buffer(writer_.piece());
    const bool is_last = writer_.is_last();
    { const HandOver given(this); }  // OnWriteDone may come on another thread
    if (is_last) {
      StartWriteLast(&out_, grpc::WriteOptions());
    } else {
      StartWrite(&out_);
    }
  }

  Message outcome(const grpc::Status& status, bool closed) {
    if (error_) std::rethrow_exception(error_);
    if (!status.ok()) fail(status, closed);
    reader_.expect_complete();
    if (!reader_.header().error.empty()) {
      std::rethrow_exception(decode_error(reader_.header().error));
    }
    return reader_.take();
  }

  [[noreturn]] void fail(const grpc::Status& status, bool closed) const {
    ErrorDetail detail{.peer = to_string(state_->options.peer), .rpc = method_};
    const auto raise = [&](Code code, const std::string& text, Cause cause = Cause::kOther) {
      detail.cause = cause;
      std::rethrow_exception(make_error(code, text, "", detail));
    };
    const std::string whom = state_->whom();
    if (closed) {
      raise(Code::kCancelled, str(method_, ": the channel to ", whom, " was closed"),
            Cause::kClosed);
    }
    switch (status.error_code()) {
      case grpc::DEADLINE_EXCEEDED:
        raise(Code::kDeadlineExceeded,
              str(whom, " did not answer ", method_, " within ",
                  std::chrono::duration<double>(timeout_).count(), " s"),
              Cause::kNoAnswer);
        break;
      case grpc::UNAVAILABLE:
        if (const std::string other = state_->server_check->failure(); !other.empty()) {
          raise(Code::kUnauthenticated, other);
        }
        [[fallthrough]];
      case grpc::UNKNOWN:   // a stream that ended without a status: our servers give one
      case grpc::INTERNAL:  // a stream that was reset
        raise(Code::kUnavailable,
              str("cannot reach ", whom, " for ", method_, ": ", status.error_message()),
              Cause::kNoAnswer);
        break;
      default:
        raise(static_cast<Code>(status.error_code()),
              str(method_, " of ", whom, ": ", status.error_message()));
    }
    throw InternalError("not reached");
  }

  const std::shared_ptr<ChannelState> state_;
  const std::string method_;
  const std::chrono::nanoseconds timeout_;
  grpc::ClientContext context_;
  grpc::ByteBuffer in_;
  grpc::ByteBuffer out_;
  MessageWriter writer_;
  MessageReader reader_;
  std::function<void(CallResult)> done_;
  std::exception_ptr error_;
};

class GrpcChannel : public Channel {
 public:
  explicit GrpcChannel(const GrpcChannelOptions& options)
      : state_(std::make_shared<ChannelState>(options)) {}
  ~GrpcChannel() override { close(); }

  const TaskId& peer() const override { return state_->options.peer; }
  const std::string& address() const override { return state_->options.address; }

  void start(std::string_view method, Message request, const CallOptions& options,
             std::function<void(CallResult)> done) override {
    ClientReactor* call = nullptr;
    try {
      call = new ClientReactor(state_, method, std::move(request), options, done);
    } catch (...) {
      return done({.error = std::current_exception(), .reply = {}});
    }
    bool closed = false;
    {
      const std::lock_guard lock(state_->mutex);
      closed = state_->closed;
      if (!closed) {
        state_->calls.insert(call);
        call->start();
      }
    }
    if (!closed) return;
    delete call;
    done({.error = make_error(
              Code::kCancelled, str(method, ": the channel to ", state_->whom(), " is closed"), "",
              {.peer = to_string(peer()), .rpc = std::string(method), .cause = Cause::kClosed}),
          .reply = {}});
  }

  void close() override {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    for (ClientReactor* call : state_->calls) call->cancel();
  }

  void retry_now() override {
    grpc::experimental::ChannelResetConnectionBackoff(state_->channel.get());
  }

 private:
  const std::shared_ptr<ChannelState> state_;
};

}  // namespace

std::shared_ptr<Channel> make_grpc_channel(const GrpcChannelOptions& options) {
  take_over_grpc_log();
  hold_callback_threads();
  return std::make_shared<GrpcChannel>(options);
}

}  // namespace cohort::internal::rpc
