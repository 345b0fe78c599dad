// What a task offers to others: named methods, each with the roles that may call it. A service
// knows neither sockets nor gRPC; tests and fuzzers call it directly.
//
//   class Clock : public rpc::Service {
//     std::string_view name() const override { return "clock"; }
//     std::span<const rpc::MethodSpec> methods() const override { return kMethods; }
//     void handle(size_t method, std::unique_ptr<rpc::Call> call) override {
//       call->reply({.control = now()});
//     }
//     static constexpr rpc::MethodSpec kMethods[] = {{"now", rpc::kEverybody}};
//   };
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "cohort/cluster/rpc/message.h"
#include "cohort/cluster/rpc/role.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::rpc {

// The caller of a method: task and role, which its channel has proved, and what it says of itself.
struct Caller {
  TaskId task;
  Role role = Role::kWorker;
  uint64_t incarnation = 0;  // 0: it has none (an operator)
  int64_t generation = 0;    // of the cluster, as the caller knows it; 0: it has not registered yet
};

// One call that waits for its answer. A service that must wait keeps the call and answers later,
// from any thread; it never blocks the thread that handed the call over.
// Exactly one of reply and fail is called; a call destroyed unanswered fails with Internal.
// Thread safety: one thread at a time; on_cancel's function comes on any thread.
class Call {
 public:
  virtual ~Call() = default;

  virtual const Caller& caller() const = 0;
  virtual const Message& request() const = 0;
  // Whether the thread that hands the call over serves this caller alone. A service may give an
  // answer on it that takes only a moment, and would take longer on another thread.
  virtual bool on_own_thread() const { return false; }
  // When the caller stops waiting.
  virtual std::chrono::steady_clock::time_point deadline() const = 0;

  virtual void reply(Message message) = 0;
  virtual void fail(std::exception_ptr error) = 0;
  // Calls `cancelled`, at most once, if the caller goes away before the answer. If the caller is
  // killed this happens within milliseconds, so that a call that is kept unanswered watches its
  // caller. It is not called after the answer, but may still be running when reply returns on
  // another thread.
  virtual void on_cancel(std::function<void()> cancelled) = 0;
};

struct MethodSpec {
  std::string_view name;
  Roles callers;
  // The most bulk bytes of a request. More is ResourceExhausted before it is read.
  size_t max_bulk_bytes = 0;
  // Whether a caller of another generation than the cluster's is refused (Aborted).
  bool fenced = true;
  // The most bytes of a request's fields; at most frame.h's kMaxHeaderBytes.
  size_t max_control_bytes = size_t{64} << 10;
};

// Thread safety: handle is called by many threads at once.
class Service {
 public:
  virtual ~Service() = default;
  // Letters, digits and '_'.
  virtual std::string_view name() const = 0;
  virtual std::span<const MethodSpec> methods() const = 0;
  // `method` is an index of methods(). Roles, sizes and the generation have been checked. What it
  // throws is the call's answer if the call was not moved away.
  virtual void handle(size_t method, std::unique_ptr<Call> call) = 0;
  // The server ends: fails all kept calls with Cancelled, and takes no more.
  virtual void stop() {}
};

}  // namespace cohort::internal::rpc
