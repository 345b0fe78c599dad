// Services and servers for tests of calls.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/grpc/grpc_channel.h"
#include "cohort/cluster/grpc/grpc_server.h"
#include "cohort/cluster/rpc/dispatcher.h"
#include "cohort/cluster/rpc/identity.h"
#include "cohort/core/error.h"

namespace cohort::internal::rpc {

// Answers in every way that a service can.
class EchoService : public Service {
 public:
  std::string_view name() const override { return "echo"; }
  std::span<const MethodSpec> methods() const override { return kMethods; }

  void handle(size_t method, std::unique_ptr<Call> call) override {
    switch (method) {
      case 0:
        call->reply(call->request());
        break;
      case 1:
        throw DataLossError("byte 17 of 'w' is damaged", "/job:ps/task:7");
      case 2:
        keep(std::move(call));
        break;
      case 3:
        break;  // no answer
      case 4:
        call->reply({.control = str(call->caller().task, " ", role_name(call->caller().role), " ",
                                    call->caller().incarnation)});
        break;
      case 5:
        call->reply({.control = "changed"});
        break;
    }
  }
  void stop() override {
    std::vector<std::unique_ptr<Call>> kept;
    {
      const std::lock_guard lock(mutex_);
      kept = std::exchange(kept_, {});
      stopped_ = true;
    }
    for (auto& call : kept) call->fail(internal::make_error(Code::kCancelled, "the service stops"));
  }

  // Waits until `count` calls of "keep" have arrived, and until that many were cancelled. Whether
  // they did within 20 s.
  bool wait_for_kept(int count) {
    return wait([&] { return num_kept_ >= count; });
  }
  bool wait_for_cancelled(int count) {
    return wait([&] { return num_cancelled_ >= count; });
  }

 private:
  static constexpr MethodSpec kMethods[] = {
      {"echo", kEverybody, size_t{256} << 20},
      {"fail", kEverybody},
      {"keep", kEverybody},
      {"forget", kEverybody},
      {"who", kEverybody},
      {"change", Role::kCoordinator},
  };

  void keep(std::unique_ptr<Call> call) {
    call->on_cancel([this] {
      const std::lock_guard lock(mutex_);
      ++num_cancelled_;
      changed_.notify_all();
    });
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) throw CancelledError("the service stops");
      kept_.push_back(std::move(call));
      ++num_kept_;
    }
    changed_.notify_all();
  }

  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Call>> kept_;
  bool stopped_ = false;
  int num_kept_ = 0;
  int num_cancelled_ = 0;
};

// Chief: coordinator; the rest by their names; "stranger": nobody.
inline std::optional<Role> testing_role(const TaskId& task) {
  if (task.job == "chief") return Role::kCoordinator;
  if (task.job == "worker") return Role::kWorker;
  if (task.job == "ps") return Role::kPs;
  if (task.job == "evaluator") return Role::kEvaluator;
  if (task.job == "operator") return Role::kOperator;
  return std::nullopt;
}

// A server of task ps 0 with the echo service at a free port of loopback.
struct TestServer {
  explicit TestServer(const distribute::Credentials& credentials = {},
                      const TransportSettings& settings = quick_settings(),
                      const ListenerOptions& listener = {})
      : security(security::Security::load(credentials, TaskId{"ps", 0})),
        dispatcher({.self = {"ps", 0}, .role_of = testing_role}) {
    dispatcher.add(echo);
    server =
        std::make_unique<GrpcServer>(dispatcher, std::make_unique<Listener>(listener),
                                     GrpcServerOptions{.security = security, .settings = settings});
  }

  std::shared_ptr<Channel> channel(const TaskId& self = {"worker", 0},
                                   const distribute::Credentials& credentials = {},
                                   const TaskId& peer = {"ps", 0}) const {
    return make_grpc_channel({.peer = peer,
                              .address = server->address(),
                              .self = std::make_shared<Identity>(self, 42),
                              .security = security::Security::load(credentials, std::nullopt),
                              .settings = quick_settings()});
  }

  std::shared_ptr<EchoService> echo = std::make_shared<EchoService>();
  std::shared_ptr<const security::Security> security;
  Dispatcher dispatcher;
  std::unique_ptr<GrpcServer> server;
};

}  // namespace cohort::internal::rpc
