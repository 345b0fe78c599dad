// One call at its server, from the first byte of its request to its answer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cohort/cluster/rpc/frame.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::rpc {

// What a transport knows of a connection's other end.
struct Peer {
  std::string address;  // for texts
  std::optional<TaskId> task =
      std::nullopt;         // that its certificate proves; without, its word counts
  bool own_thread = false;  // that receives its calls, and nobody else's
};

// The counts that the sessions of a dispatcher share. A service may keep a call longer than the
// dispatcher lives.
struct Load {
  std::atomic<size_t> bulk_bytes{0};
  std::atomic<size_t> header_bytes{0};
  std::atomic<size_t> calls{0};
};

// One row of the table of who may call what.
struct MethodEntry {
  std::string name;  // "membership/register"
  std::shared_ptr<Service> service;
  size_t index = 0;
  MethodSpec spec;
};

// What a session asks of the server that it belongs to. Thread safety: any thread.
class CallRules {
 public:
  virtual ~CallRules() = default;

  // The task that it serves, and its name for texts.
  virtual const TaskId& self() const = 0;
  virtual const std::string& name() const = 0;

  // Errors: NotFound, ResourceExhausted (too many calls), Cancelled (the server has stopped).
  virtual std::shared_ptr<const MethodEntry> find(std::string_view method) const = 0;
  // The caller, if it may call `entry`. Errors: Unauthenticated, PermissionDenied, Aborted.
  virtual Caller admit(const MethodEntry& entry, const Peer& peer, const Claim& claim) const = 0;
  // Errors: those of Fence::check.
  virtual void check_fence(const MethodEntry& entry, const Caller& caller) const = 0;
  // Counts bytes that a session is going to hold: bulk, and what stands before it.
  // Errors: ResourceExhausted.
  virtual void reserve(size_t bytes) = 0;
  virtual void reserve_header(size_t bytes) = 0;
};

// Sends an answer.
using AnswerFn = std::function<void(MessageWriter answer)>;

// Thread safety: begin, append, filled and those that end a request come from one thread at a time,
// cancel from any. None of them throws; what is wrong with a request becomes its answer.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `rules` lives until the request has come.
  Session(CallRules& rules, std::shared_ptr<Load> load, Peer peer,
          std::chrono::steady_clock::time_point deadline, AnswerFn answer);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Once, first of all: the call is one of `method`; or it is refused with `error`.
  void begin(std::string_view method) noexcept;
  void refuse(std::string_view method, const std::exception_ptr& error) noexcept;

  void append(std::string_view bytes) noexcept;
  // The memory into which a transport can receive the next bytes directly, as MessageReader::room.
  std::span<char> room() noexcept { return reader_ ? reader_->room() : std::span<char>(); }
  void filled(size_t bytes) noexcept;
  // False once the request is refused: the rest of it is of no interest then.
  bool wants_more() const { return reader_.has_value(); }
  // The caller sends no more.
  void end_of_request() noexcept;
  // The rest of the request has not come in time: DeadlineExceeded is the answer.
  void end_late_request() noexcept;
  // The caller has gone away or its deadline has passed. True: no answer follows. False: one has
  // been given, or is just being given.
  bool cancel() noexcept;

 private:
  class Kept;  // the Call that a service holds

  MessageReader::HeaderLimits header_limits();
  void admit(const Header& header);
  void dispatch() noexcept;
  void answer(Message message) noexcept;
  void answer(const std::exception_ptr& error) noexcept;
  void send(MessageWriter writer) noexcept;
  // The service let go of the call without an answer.
  void dropped() noexcept;

  CallRules& rules_;
  const std::shared_ptr<Load> load_;
  const std::string server_;  // the task that answers
  const Peer peer_;
  const std::chrono::steady_clock::time_point deadline_;
  std::string method_;
  std::shared_ptr<const MethodEntry> entry_;
  std::optional<MessageReader> reader_;
  Caller caller_;
  Message request_;
  size_t reserved_bytes_ = 0;
  size_t reserved_header_bytes_ = 0;

  std::mutex mutex_;  // guards what follows
  AnswerFn answer_;   // empty once the call is answered or cancelled
  std::function<void()> on_cancel_;
  bool cancelled_ = false;
  bool in_handle_ = false;  // what handle() throws is the answer; dropping the call there is none
  bool dropped_ = false;
};

}  // namespace cohort::internal::rpc
