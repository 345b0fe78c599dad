// Calls to a service without a network: tests and fuzzers make them by hand.
//
//   auto call = call_service(service, CoordinationService::kHeartbeat, {.task = {"worker", 0}}, bytes);
//   call->answered, call->control, call->error
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cohort/cluster/membership/message_body.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {

struct CallState {
  int answers = 0;
  std::string control;
  std::exception_ptr error;
  std::function<void()> cancelled;
  std::function<void(rpc::CallResult)> done;

  bool answered() const { return answers > 0; }
  // The caller goes away.
  void cancel() {
    if (cancelled && !answered()) std::exchange(cancelled, nullptr)();
  }
};

class DirectCall final : public rpc::Call {
 public:
  DirectCall(std::shared_ptr<CallState> state, rpc::Caller caller, rpc::Message request)
      : state_(std::move(state)), caller_(std::move(caller)), request_(std::move(request)) {}

  const rpc::Caller& caller() const override { return caller_; }
  const rpc::Message& request() const override { return request_; }
  std::chrono::steady_clock::time_point deadline() const override {
    return std::chrono::steady_clock::time_point::max();
  }
  void reply(rpc::Message message) override {
    ++state_->answers;
    state_->control = body_of(message);
    if (state_->done) state_->done({.error = nullptr, .reply = std::move(message)});
  }
  void fail(std::exception_ptr error) override {
    ++state_->answers;
    state_->error = error;
    if (state_->done) state_->done({.error = error, .reply = {}});
  }
  void on_cancel(std::function<void()> cancelled) override {
    state_->cancelled = std::move(cancelled);
  }

 private:
  const std::shared_ptr<CallState> state_;
  const rpc::Caller caller_;
  const rpc::Message request_;
};

inline std::shared_ptr<CallState> call_service(rpc::Service& service, size_t method,
                                               const rpc::Caller& caller, std::string control) {
  auto state = std::make_shared<CallState>();
  service.handle(method,
                 std::make_unique<DirectCall>(state, caller, to_message(std::move(control))));
  return state;
}

// To a service of the same process; a null one cannot be reached.
class DirectChannel final : public rpc::Channel {
 public:
  DirectChannel(rpc::Service* service, rpc::Caller caller)
      : service_(service), caller_(std::move(caller)) {}

  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void close() override {}
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions&,
             std::function<void(rpc::CallResult)> done) override {
    if (service_ == nullptr) {
      return done({.error = make_error(Code::kUnavailable, "connection refused"), .reply = {}});
    }
    const std::string_view name = method.substr(method.find('/') + 1);
    const auto methods = service_->methods();
    for (size_t i = 0; i < methods.size(); ++i) {
      if (methods[i].name != name) continue;
      auto state = std::make_shared<CallState>();
      state->done = std::move(done);
      return service_->handle(i, std::make_unique<DirectCall>(state, caller_, std::move(request)));
    }
    done({.error = make_error(Code::kUnimplemented, std::string(method)), .reply = {}});
  }

 private:
  rpc::Service* const service_;
  const rpc::Caller caller_;
  const TaskId peer_{"chief", 0};
  const std::string address_ = "h0:2222";
};

}  // namespace cohort::internal::membership
