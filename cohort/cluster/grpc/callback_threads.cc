#include "cohort/cluster/grpc/callback_threads.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

namespace cohort::internal::rpc {
namespace {

// A call to nowhere: the first of a channel makes it hold the threads.
class CallToNowhere : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit CallToNowhere(grpc::GenericStub& stub) {
    stub.PrepareBidiStreamingCall(&context_, "/none/none", {}, this);
    StartCall();
    context_.TryCancel();
  }
  void OnDone(const grpc::Status&) override { delete this; }

 private:
  grpc::ClientContext context_;
};

}  // namespace

void hold_callback_threads() {
  // Never destroyed.
  static auto* const held = [] {
    auto* stub = new grpc::GenericStub(
        grpc::CreateChannel("unix:/dev/null/none", grpc::InsecureChannelCredentials()));
    new CallToNowhere(*stub);
    return stub;
  }();
  static_cast<void>(held);
}

}  // namespace cohort::internal::rpc
