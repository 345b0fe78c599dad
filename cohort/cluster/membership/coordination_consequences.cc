// The consequences that a change of the roster, the store or the time has for waiting callers.
#include <algorithm>

#include "cohort/cluster/membership/coordination_core.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {
namespace {

using Kind = WaitingCall::Kind;

constexpr Duration kLookForDead = std::chrono::milliseconds(20);

std::string what_barrier(const std::string& name) {
  return str("barrier ", quoted(rpc::printable(name)), ": ");
}

// The same error, with words before its text.
std::exception_ptr with_prefix(const std::string& prefix, const std::exception_ptr& error) {
  const ErrorRecord record = record_error(error);
  return rpc::make_error(record.code, prefix + record.message, record.task, rpc::detail_of(error));
}

int64_t whole_seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

void CoordinationCore::settle(Outbox& out) {
  settle_ended(out);
  settle_registrations(out);
  roster_.agree();
  if (roster_.generation() != generation_settled_) {
    generation_settled_ = roster_.generation();
    const auto error = make_error(
        Code::kAborted, str("the group has changed; it is in generation ", generation_settled_));
    break_rounds(barriers_.end_others(generation_settled_), error, out);
  }
  if (roster_.started() && !start_logged_) {
    start_logged_ = true;
    out.log(str("the cluster has started: ", roster_.group().size(), " tasks, generation ",
                roster_.generation()));
  }
  settle_watches(out);
}

void CoordinationCore::settle_ended(Outbox& out) {
  for (const Roster::Ended& ended : roster_.take_ended()) {
    const std::string text = record_error(ended.error).message;
    ended.is_as_planned ? out.detail(text) : out.log(text);
    store_.end(ended.session);
    break_rounds(barriers_.end_with(ended.session.task), ended.error, out);
    const auto of_it = [&](const WaitingCall& waiting) { return waiting.session == ended.session; };
    const std::exception_ptr refusal =
        ended.may_return
            ? make_error(Code::kNotFound, record_error(ended.error).message)
            : make_error(Code::kAborted, str("fenced, generation ", roster_.generation(), ": ",
                                             record_error(ended.error).message));
    for (const uint64_t id : waiting_.find_all(of_it)) out.fail(waiting_.take(id).call, refusal);
  }
}

void CoordinationCore::settle_registrations(Outbox& out) {
  const auto registers = [](const WaitingCall& waiting) { return waiting.kind == Kind::kRegister; };
  for (const uint64_t id : waiting_.find_all(registers)) {
    const WaitingCall& waiting = *waiting_.find(id);
    const Session session = waiting.session;
    try {
      const auto live = roster_.live_incarnation(session.task);
      if (live && *live != session.incarnation) {
        if (!roster_.has_seen(session.task, waiting.version)) continue;
        throw AbortedError(str(session.task, " is already registered, incarnation ", hex(*live),
                               ", and alive; is it started twice?"));
      }
      roster_.admit(clock_.now(), session, waiting.registration);
      std::string reply = accepted(session.task, waiting.registration.program, out);
      out.reply(waiting_.take(id).call, std::move(reply));
    } catch (const Error&) {
      out.fail(waiting_.take(id).call, std::current_exception());
    }
  }
}

void CoordinationCore::settle_watches(Outbox& out) {
  if (roster_.version() == version_told_) return;
  version_told_ = roster_.version();
  std::map<int64_t, std::string> views;  // by the version that they begin behind
  const auto watches = [](const WaitingCall& waiting) { return waiting.kind == Kind::kWatch; };
  for (const uint64_t id : waiting_.find_all(watches)) {
    WaitingCall waiting = waiting_.take(id);
    const auto [view, is_new] = views.try_emplace(waiting.version);
    if (is_new) view->second = roster_.view(waiting.version).encode();
    out.reply(std::move(waiting.call), view->second);
  }
}

void CoordinationCore::break_rounds(const std::vector<Barriers::Broken>& rounds,
                                    const std::exception_ptr& error, Outbox& out) {
  for (const Barriers::Broken& round : rounds) {
    const std::exception_ptr named = with_prefix(what_barrier(round.name), error);
    for (const uint64_t arrival : round.arrivals) out.fail(waiting_.take(arrival).call, named);
  }
}

void CoordinationCore::answer_gets(const std::string& key, Outbox& out) {
  const std::string* value = store_.get(key);
  if (value == nullptr) return;
  const std::string reply = StoreReply{.done = true, .value = *value, .has_value = true}.encode();
  const auto waits = [&](const WaitingCall& waiting) {
    return waiting.kind == Kind::kGet && waiting.name == key;
  };
  for (const uint64_t id : waiting_.find_all(waits)) out.reply(waiting_.take(id).call, reply);
}

void CoordinationCore::answer_due(Time now, Outbox& out) {
  for (const uint64_t id : waiting_.due(now)) {
    const WaitingCall* waiting = waiting_.find(id);
    if (waiting == nullptr) continue;  // answered with another
    switch (waiting->kind) {
      case Kind::kWatch: {
        std::string view = roster_.view(waiting->version).encode();
        out.reply(waiting_.take(id).call, std::move(view));
        break;
      }
      case Kind::kAttend:
        out.reply(waiting_.take(id).call, "");
        break;
      case Kind::kGet:
        out.reply(waiting_.take(id).call, StoreReply{}.encode());
        break;
      case Kind::kRegister: {
        WaitingCall newcomer = waiting_.take(id);
        out.fail(
            std::move(newcomer.call),
            make_error(Code::kUnavailable, str("the predecessor of this ", newcomer.session.task,
                                               " may still be alive; ask again")));
        break;
      }
      case Kind::kBarrier:
        answer_barrier_in_time(id, out);
        break;
    }
  }
}

void CoordinationCore::answer_barrier_in_time(uint64_t id, Outbox& out) {
  const auto round = barriers_.end_of(waiting_.find(id)->name, id);
  if (!round) return;
  const auto error =
      make_error(Code::kDeadlineExceeded,
                 str("not all tasks came in time; missing: ", list_tasks(round->missing)));
  break_rounds({*round}, error, out);
}

void CoordinationCore::watch_start(Time now, Outbox& out) {
  if (roster_.started() || roster_.failed()) return;
  const Duration waited = now - began_;
  if (waited >= options_.start_timeout) {
    const std::string text =
        str("the cluster has not started within ", whole_seconds(options_.start_timeout),
            " s; missing: ", roster_.describe_missing(now));
    out.log(text);
    roster_.fail(rpc::make_error(Code::kDeadlineExceeded, text, "",
                                 {.phase = "start", .cause = Cause::kNotStarted}));
    return;
  }
  if (now < next_report_) return;
  next_report_ = now + options_.report_missing_every;
  out.log(str("waiting for ", whole_seconds(waited), " s for ", roster_.describe_missing(now)));
}

// The half of a group that is no majority waits for the others.
void CoordinationCore::watch_agreement(Time now, Outbox& out) {
  if (!roster_.started() || roster_.failed() || roster_.agreed()) return disagrees_since_.reset();
  if (!disagrees_since_) {
    disagrees_since_ = now;
    next_report_ = now + options_.report_missing_every;
  }
  const Duration waited = now - *disagrees_since_;
  const std::string text =
      str("generation ", roster_.generation(),
          " is no majority of the group before it; missing: ", roster_.describe_missing(now));
  if (waited >= options_.start_timeout) {
    const std::string end = str("waited for ", whole_seconds(options_.start_timeout), " s: ", text);
    out.log(end);
    return roster_.fail(rpc::make_error(
        Code::kUnavailable, end, "", {.generation = roster_.generation(), .phase = "agreement"}));
  }
  if (now < next_report_) return;
  next_report_ = now + options_.report_missing_every;
  out.log(str("waiting for ", whole_seconds(waited), " s: ", text));
}

void CoordinationCore::on_timer(Time when) {
  change([&](Outbox& out) {
    if (stopped_) return;
    if (when == armed_) armed_ = Time::max();
    const Time now = clock_.now();
    // So late: this process itself did not run, and heard nobody.
    if (now - when > options_.roster.heartbeat.interval / 2) roster_.restart_silence(now);
    roster_.expire(now);
    watch_start(now, out);
    roster_.agree();  // processes may have been found to have ended
    watch_agreement(now, out);
    settle_ended(out);
    settle_registrations(out);  // before the time of one that may come in now is up
    answer_due(now, out);
  });
}

void CoordinationCore::arm(Time now) {
  Time next = now + options_.roster.heartbeat.interval / 4;
  // A process that has been killed takes a moment to end.
  if (!roster_.agreed()) next = std::min<Time>(next, now + kLookForDead);
  if (const auto due = waiting_.next()) next = std::min(next, *due);
  if (const auto due = roster_.next_expiry()) next = std::min(next, *due);
  if (!roster_.started() && !roster_.failed())
    next = std::min({next, next_report_, began_ + options_.start_timeout});
  next = std::max(next, now);
  if (next >= armed_) return;
  armed_ = next;
  clock_.call_at(next, [weak = weak_from_this(), next] {
    if (const auto self = weak.lock()) self->on_timer(next);
  });
}

}  // namespace cohort::internal::membership
