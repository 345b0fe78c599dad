#include "cohort/cluster/grpc/callback_threads.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include "cohort/cluster/grpc/hand_over.h"

namespace cohort::internal::rpc {
namespace {

// A call to nowhere. The first call of a channel makes the channel hold the threads.
class CallToNowhere final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // It ends itself, perhaps before this returns.
  void start(grpc::GenericStub& stub) {
    {
      const UnwatchedWrites within_grpc;
      stub.PrepareBidiStreamingCall(&context_, "/none/none", {}, this);
    }
    AddHold();  // until it has been cancelled
    StartCall();
    context_.TryCancel();
    RemoveHold();
  }
  void OnDone(const grpc::Status&) override { delete this; }

 private:
  grpc::ClientContext context_;
};

}  // namespace

void hold_callback_threads() {
  // Never destroyed. "used", so that it is kept where leak checkers look for what is still in use.
  [[gnu::used]] static auto* const held = [] {
    auto* stub = new grpc::GenericStub(
        grpc::CreateChannel("unix:/dev/null/none", grpc::InsecureChannelCredentials()));
    (new CallToNowhere)->start(*stub);
    return stub;
  }();
}

}  // namespace cohort::internal::rpc
