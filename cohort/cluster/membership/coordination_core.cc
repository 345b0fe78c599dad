#include "cohort/cluster/membership/coordination_core.h"

#include <algorithm>

#include "cohort/cluster/membership/message_body.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {
namespace {

using Method = CoordinationMethod;

constexpr size_t kMostReplacements = 4;

Session session_of(const rpc::Call& call) {
  return {call.caller().task, call.caller().incarnation};
}

std::string_view request_of(const rpc::Call& call) { return body_of(call.request()); }

}  // namespace

CoordinationCore::CoordinationCore(rpc::Clock& clock, CoordinationOptions options)
    : clock_(clock),
      options_(std::move(options)),
      roster_(options_.roster, options_.incarnation, clock.now()),
      store_(options_.store),
      began_(clock.now()),
      next_report_(began_ + options_.report_missing_every) {
  program_.compare(options_.self, options_.program);
}

void CoordinationCore::change(FunctionRef<void(Outbox&)> work) {
  Outbox out;
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    const int64_t before = version_told_;
    work(out);
    settle(out);
    is_new = version_told_ != before;
    if (!stopped_) arm(clock_.now());
  }
  for (const std::string& line : out.lines()) options_.log(line);
  for (const std::string& line : out.details()) options_.detail(line);
  out.send();
  if (is_new) options_.on_change();
}

void CoordinationCore::start() {
  const std::lock_guard lock(mutex_);
  arm(began_);
}

void CoordinationCore::handle(size_t method, CallPtr call) {
  if (method == Method::kWatch || method == Method::kAttend) {
    // Before the lock: it may be called at once.
    call->on_cancel([weak = weak_from_this(), session = session_of(*call)] {
      if (const auto self = weak.lock()) self->connection_lost(session);
    });
  }
  const Gone gone =
      method == Method::kGet || method == Method::kBarrier ? watch_caller(*call) : nullptr;
  change([&](Outbox& out) {
    try {
      if (stopped_) throw CancelledError("the coordination service has stopped");
      if (gone && *gone) throw CancelledError("the caller is gone");
      Reply reply = dispatch(method, call, gone, out);
      if (reply) out.reply(std::move(call), std::move(*reply));
    } catch (...) {
      if (call) out.fail(std::move(call), std::current_exception());
    }
  });
}

// Before the lock, as the caller may be gone already.
CoordinationCore::Gone CoordinationCore::watch_caller(rpc::Call& call) {
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  call.on_cancel([weak = weak_from_this(), gone] {
    *gone = true;
    if (const auto self = weak.lock()) self->drop_gone();
  });
  return gone;
}

// A barrier must not open for a task that has stopped waiting at it: it may be gone.
void CoordinationCore::drop_gone() {
  change([&](Outbox& out) {
    const auto is_gone = [](const WaitingCall& waiting) { return waiting.gone && *waiting.gone; };
    for (const uint64_t id : waiting_.find_all(is_gone)) {
      WaitingCall waiting = waiting_.take(id);
      if (waiting.kind == WaitingCall::Kind::kBarrier) barriers_.withdraw(waiting.name, id);
      out.fail(std::move(waiting.call), make_error(Code::kCancelled, "the caller is gone"));
    }
  });
}

CoordinationCore::Reply CoordinationCore::dispatch(size_t method, CallPtr& call, const Gone& gone,
                                                   Outbox& out) {
  const Session session = session_of(*call);
  const Time now = clock_.now();
  if (method == Method::kStatus) return roster_.status(now).encode();
  if (method == Method::kRegister) return register_task(session, call, out);
  if (method == Method::kWatch) return watch(session, call, out);
  if (method == Method::kAttend) return attend(session, call, out);
  if (method == Method::kHeartbeat) {
    HeartbeatRequest request = HeartbeatRequest::decode(request_of(*call));
    roster_.heard(now, session, request.seen);
    roster_.set_figures(session, std::move(request.figures));
    return HeartbeatReply{.version = roster_.version()}.encode();
  }
  roster_.heard(now, session, 0);
  if (method >= Method::kBarrier && !roster_.agreed()) {
    std::rethrow_exception(rpc::make_error(
        Code::kUnavailable,
        str("the members of generation ", roster_.generation(),
            " have not acknowledged it with a majority of the group before; call again"),
        "", {.generation = roster_.generation(), .phase = "agreement", .cause = Cause::kBehind}));
  }
  switch (method) {
    case Method::kLeave:
      roster_.leave(now, session, LeaveRequest::decode(request_of(*call)).where);
      return "";
    case Method::kReport:
      roster_.report(session, ReportRequest::decode(request_of(*call)).error);
      return "";
    case Method::kDeclare:
      return DeclareReply{
          program_.compare(session.task, DeclareRequest::decode(request_of(*call)).program)}
          .encode();
    case Method::kBarrier:
      return barrier(session, call, gone, out);
    default:
      return use_store(method, session, call, gone, out);
  }
}

void CoordinationCore::check_program(const TaskId& task, const RegisterRequest& request) {
  if (request.protocol_major != kProtocolMajor) {
    throw FailedPreconditionError(
        str(task, " speaks version ", request.protocol_major, '.', request.protocol_minor,
            " of the cluster's protocol, ", options_.self, " version ", kProtocolMajor, '.',
            kProtocolMinor, "; run the same version of Cohort in every task"));
  }
  compare_cluster_specs(options_.self, options_.cluster_spec, task, request.cluster_spec);
}

std::string CoordinationCore::accepted(const TaskId& task, const std::vector<Section>& program,
                                       Outbox& out) {
  RegisterReply reply{.service = options_.incarnation,
                      .heartbeat = options_.roster.heartbeat,
                      .warnings = program_.compare(task, program)};
  for (const std::string& warning : reply.warnings) out.log(warning);
  return reply.encode();
}

CoordinationCore::Reply CoordinationCore::register_task(const Session& session, CallPtr& call,
                                                        Outbox& out) {
  RegisterRequest request = RegisterRequest::decode(request_of(*call));
  try {
    check_program(session.task, request);
    std::string reply = accepted(session.task, request.program, out);
    if (roster_.admit(clock_.now(), session, request) != Roster::Admission::kWaits) return reply;
  } catch (const Error& error) {
    // One that is to ask again does so soon.
    if (error.code() == Code::kUnavailable) throw;
    out.log(str("refused ", rpc::printable(to_string(session.task)), " (",
                rpc::printable(request.address), "): ", error.what()));
    roster_.note_refused(clock_.now(), session.task, error.what());
    throw;
  }
  const auto replaces = [&](const WaitingCall& waiting) {
    return waiting.kind == WaitingCall::Kind::kRegister && waiting.session.task == session.task;
  };
  size_t others = 0;
  for (const uint64_t id : waiting_.find_all(replaces)) {
    if (waiting_.find(id)->session == session) {  // the same, asking again
      out.fail(waiting_.take(id).call, make_error(Code::kCancelled, "asked again"));
    } else {
      ++others;
    }
  }
  if (others >= kMostReplacements) {
    throw AbortedError(str(session.task, " is registered already, and ", others,
                           " replacements wait for it to end"));
  }
  out.log(str(session.task, ", incarnation ", hex(session.incarnation),
              ", waits: its predecessor, incarnation ",
              hex(*roster_.live_incarnation(session.task)), ", may be alive"));
  // It shows itself by answering to the new version: at once, through its watch.
  waiting_.add({.kind = WaitingCall::Kind::kRegister,
                .session = session,
                .until = clock_.now() + options_.roster.heartbeat.dead_after,
                .request = 0,
                .name = "",
                .version = roster_.ping(),
                .registration = std::move(request)},
               call);
  return std::nullopt;
}

CoordinationCore::Reply CoordinationCore::watch(const Session& session, CallPtr& call,
                                                Outbox& out) {
  const WatchRequest request = WatchRequest::decode(request_of(*call));
  const Time now = clock_.now();
  roster_.heard(now, session, request.since);
  const auto earlier = [&](const WaitingCall& waiting) {
    return waiting.kind == WaitingCall::Kind::kWatch && waiting.session == session;
  };
  for (const uint64_t id : waiting_.find_all(earlier)) {
    WaitingCall old = waiting_.take(id);
    out.reply(std::move(old.call), roster_.view(old.version).encode());
  }
  if (request.since < roster_.version()) return roster_.view(request.since).encode();
  waiting_.add({.kind = WaitingCall::Kind::kWatch,
                .session = session,
                .until = now + request.at_most,
                .request = 0,
                .name = "",
                .version = request.since,
                .registration = {}},
               call);
  return std::nullopt;
}

CoordinationCore::Reply CoordinationCore::attend(const Session& session, CallPtr& call,
                                                 Outbox& out) {
  const WatchRequest request = WatchRequest::decode(request_of(*call));
  const Time now = clock_.now();
  roster_.heard(now, session, 0);
  const auto earlier = [&](const WaitingCall& waiting) {
    return waiting.kind == WaitingCall::Kind::kAttend && waiting.session == session;
  };
  for (const uint64_t id : waiting_.find_all(earlier)) out.reply(waiting_.take(id).call, "");
  waiting_.add(
      {.kind = WaitingCall::Kind::kAttend, .session = session, .until = now + request.at_most},
      call);
  return std::nullopt;
}

CoordinationCore::Reply CoordinationCore::barrier(const Session& session, CallPtr& call,
                                                  const Gone& gone, Outbox& out) {
  BarrierRequest request = BarrierRequest::decode(request_of(*call));
  const NumberedRequest number{Method::kBarrier, request.id, request.oldest};
  if (const StoreReply* before = answered_.find(session, number)) return before->encode();
  if (!roster_.started()) {
    throw FailedPreconditionError("barrier: the cluster has not started; wait for the start first");
  }
  // A task that comes to a round that has just ended learns the same as those that waited in it.
  if (const std::exception_ptr error = roster_.ended_since(request.generation)) {
    std::rethrow_exception(error);
  }
  roster_.check_generation(session, request.generation);
  const View view = roster_.view(roster_.version());
  if (request.tasks.empty()) {
    for (const Member& member : view.members) {
      if (!member.observer && member.state == TaskState::kAlive) {
        request.tasks.push_back(member.task);
      }
    }
  }
  for (const TaskId& task : request.tasks) {
    const Member* member = view.find(task);
    if (member == nullptr) {
      throw InvalidArgumentError(str("barrier ", quoted(rpc::printable(request.name)), ": ",
                                     rpc::printable(to_string(task)),
                                     " is no task of this cluster"));
    }
    if (member->state != TaskState::kAlive) {
      throw_error(Code::kUnavailable,
                  str("barrier ", quoted(rpc::printable(request.name)), ": ", task,
                      " cannot come, it is ", state_name(member->state)),
                  to_string(task));
    }
  }
  const auto repeats = [&](const WaitingCall& waiting) {
    return waiting.kind == WaitingCall::Kind::kBarrier && waiting.session == session &&
           waiting.request == request.id && waiting.name == request.name;
  };
  const std::vector<uint64_t> before = waiting_.find_all(repeats);
  if (request.id != 0 && !before.empty()) {
    WaitingCall& earlier = *waiting_.find(before.front());
    std::swap(earlier.call, call);
    earlier.gone = gone;
    throw CancelledError("asked again");  // the answer of the earlier call
  }
  const uint64_t id = waiting_.add({.kind = WaitingCall::Kind::kBarrier,
                                    .session = session,
                                    .until = clock_.now() + request.at_most,
                                    .request = request.id,
                                    .name = request.name,
                                    .version = 0,
                                    .registration = {},
                                    .gone = gone},
                                   call);
  try {
    for (const uint64_t arrival :
         barriers_.arrive(request.name, request.tasks, request.generation, session.task, id)) {
      WaitingCall arrived = waiting_.take(arrival);
      const StoreReply reply{.done = true};
      answered_.add(arrived.session, {Method::kBarrier, arrived.request}, reply);
      out.reply(std::move(arrived.call), reply.encode());
    }
  } catch (...) {
    call = waiting_.take(id).call;
    throw;
  }
  return std::nullopt;
}

void CoordinationCore::connection_lost(const Session& session) {
  change([&](Outbox&) {
    if (!stopped_) roster_.connection_lost(clock_.now(), session);
  });
}

void CoordinationCore::process_gone(const Session& session) {
  change([&](Outbox&) {
    if (!stopped_) roster_.process_gone(clock_.now(), session);
  });
}

void CoordinationCore::absent(const TaskId& task) {
  change([&](Outbox&) {
    if (!stopped_) roster_.absent(clock_.now(), task);
  });
}

void CoordinationCore::fail(const std::exception_ptr& error) {
  change([&](Outbox& out) {
    if (stopped_ || roster_.failed()) return;
    out.log(record_error(error).message);
    roster_.fail(error);
  });
}

void CoordinationCore::stop() {
  change([&](Outbox& out) {
    stopped_ = true;
    for (const uint64_t id : waiting_.find_all([](const WaitingCall&) { return true; })) {
      out.fail(waiting_.take(id).call,
               make_error(Code::kCancelled, "the coordination service has stopped"));
    }
    barriers_ = Barriers();
  });
}

View CoordinationCore::status() const {
  const std::lock_guard lock(mutex_);
  return roster_.status(clock_.now());
}

int64_t CoordinationCore::stale_refused() const {
  const std::lock_guard lock(mutex_);
  return roster_.stale_refused();
}

}  // namespace cohort::internal::membership
