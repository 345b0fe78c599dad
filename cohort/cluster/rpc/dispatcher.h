// The services of one server. It finds the method of a call, refuses calls that are not allowed,
// and hands the others over. It knows neither sockets nor gRPC; a transport brings bytes and takes
// bytes.
//
//   Dispatcher dispatcher({.self = {"ps", 0}, .role_of = role_of});
//   dispatcher.add(std::make_shared<Clock>());
//   auto session = dispatcher.begin("clock/now", {.address = "127.0.0.1:4711"}, deadline, answer);
//   session->append(bytes);        // as they arrive
//   session->end_of_request();     // answer(writer) is called, now or later
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/rpc/fence.h"
#include "cohort/cluster/rpc/role.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/cluster/rpc/session.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::rpc {

struct DispatcherOptions {
  TaskId self;
  // The role of a task; nothing for one that has no business here.
  std::function<std::optional<Role>(const TaskId& task)> role_of;
  // The most bulk bytes of all requests that are being received or answered. More is
  // ResourceExhausted.
  size_t max_bulk_bytes = size_t{8} << 30;
  // The most control bytes, and other bytes before the bulk, of the same requests. They are counted
  // apart, so that a server that is full of tensors still hears heartbeats.
  size_t max_header_bytes = size_t{1} << 30;
  // Each task of a cluster keeps two calls with the one that coordinates it, all the time.
  size_t max_calls = 10'000;
};

// Thread safety: any thread.
class Dispatcher final : private CallRules {
 public:
  explicit Dispatcher(DispatcherOptions options);
  ~Dispatcher() override;
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Errors: AlreadyExists (the name is taken), InvalidArgument (a name that is none, a method above
  // kMaxHeaderBytes), FailedPrecondition (after stop()).
  void add(std::shared_ptr<Service> service);
  // nullptr: nothing is fenced.
  void set_fence(std::shared_ptr<const Fence> fence);
  // All methods, by name.
  std::vector<MethodEntry> table() const;

  // Starts a call of `method` ("service/method"). `answer` is called exactly once, on any thread,
  // also from within begin(), unless the session is cancelled before.
  std::shared_ptr<Session> begin(std::string_view method, const Peer& peer,
                                 std::chrono::steady_clock::time_point deadline, AnswerFn answer);

  // The same for a caller that the transport refuses: `error` is the answer.
  std::shared_ptr<Session> refuse(std::string_view method, const Peer& peer,
                                  const std::exception_ptr& error, AnswerFn answer);

  // Fails calls under way with Cancelled: services fail those that they keep. Later ones fail so
  // too.
  void stop();

  const TaskId& self() const override { return options_.self; }
  size_t calls_under_way() const { return load_->calls.load(std::memory_order_relaxed); }

 private:
  const std::string& name() const override { return name_; }
  std::shared_ptr<const MethodEntry> find(std::string_view method) const override;
  Caller admit(const MethodEntry& entry, const Peer& peer, const Claim& claim) const override;
  void check_fence(const MethodEntry& entry, const Caller& caller) const override;
  void reserve(size_t bytes) override;
  void reserve_header(size_t bytes) override;
  std::shared_ptr<Session> make_session(const Peer& peer,
                                        std::chrono::steady_clock::time_point deadline,
                                        AnswerFn answer);

  const DispatcherOptions options_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Service>, std::less<>> services_;
  std::map<std::string, std::shared_ptr<const MethodEntry>, std::less<>> methods_;
  std::shared_ptr<const Fence> fence_;
  bool stopped_ = false;
  const std::shared_ptr<Load> load_ = std::make_shared<Load>();
};

}  // namespace cohort::internal::rpc
