#include "cohort/cluster/membership/roster.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/membership/barriers.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {
namespace {

constexpr size_t kMostEnded = 64;
constexpr size_t kMostObservers = 64;
constexpr size_t kMostNamedMissing = 10;
constexpr int64_t kMostGenerations = int64_t{1} << 53;

std::string in_seconds(Duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count() / 100;
  return str(tenths / 10, '.', tenths % 10, " s");
}

std::string where_text(const std::string& address) {
  return address.empty() ? "" : " (" + rpc::printable(address) + ")";
}

}  // namespace

Roster::Roster(RosterOptions options, uint64_t service, Time now)
    : options_(std::move(options)), service_(service), began_(now) {
  check(options_.heartbeat);
  for (const auto& [task, address] : options_.tasks) {
    Entry& entry = entries_[task];
    entry.member.task = task;
    entry.member.address = address;
    entry.address_given = !address.empty();
    entry.since = now;
  }
  if (options_.elastic) take_record();
}

Roster::Admission Roster::admit(Time now, const Session& session, const RegisterRequest& request) {
  throw_failure();
  if (std::min(request.term_seen, request.generation_seen) < 0 ||
      std::max(request.term_seen, request.generation_seen) > kMostGenerations) {
    throw InvalidArgumentError(str(session.task, " reports generation ", request.generation_seen,
                                   " of term ", request.term_seen, ", which are none"));
  }
  if (session.incarnation == 0) {
    throw InvalidArgumentError(str(session.task, " registers without an incarnation"));
  }
  Entry& entry = entry_for(session);
  if (has_ended(entry, session.incarnation)) refuse(session, "this incarnation was declared lost");
  const bool is_in =
      entry.member.state == TaskState::kAlive && entry.member.incarnation == session.incarnation;
  // A later term proves nothing of other tasks: a process that was stopped for long may come from a
  // group of which no survivor told this service.
  if (options_.elastic && started() && request.term_seen > term_) {
    // Whether that group or this one goes on is for the majority to say.
    if (is_in) {
      end(now, entry, TaskState::kLost, str("it has been in a group of term ", request.term_seen));
    }
    refuse(session, str("this incarnation has been in term ", request.term_seen,
                        ", this service's is ", term_));
  }
  if (started() && is_in && request.term_seen > term_) {
    fail(rpc::make_error(
        Code::kAborted,
        str("fenced, generation ", request.generation_seen, ": ", session.task,
            " has been in a group that another coordination service has formed since (term ",
            request.term_seen, ", this one's is ", term_, "); this one has been superseded"),
        "", {.generation = request.generation_seen, .phase = "register"}));
    throw_failure();
  }
  if (options_.elastic) learn_record(request);
  if (is_in) {
    entry.heard = now;
    return Admission::kRepeated;
  }
  if (entry.member.state == TaskState::kAlive) return Admission::kWaits;
  if (options_.elastic && !entry.member.observer) check_predecessor(now, session);
  accept(now, entry, session, request);
  return Admission::kAccepted;
}

Roster::Entry& Roster::entry_for(const Session& session) {
  const auto found = entries_.find(session.task);
  if (found != entries_.end()) return found->second;
  if (options_.observer_jobs.count(session.task.job) == 0 || session.task.index < 0) {
    throw FailedPreconditionError(str(rpc::printable(to_string(session.task)),
                                      " is no task of this cluster; its tasks are ",
                                      list_tasks(group())));
  }
  if (entries_.size() >= options_.tasks.size() + kMostObservers) {
    throw ResourceExhaustedError(str(session.task, ": the cluster has ", kMostObservers,
                                     " observers already, as many as it may have"));
  }
  Entry& entry = entries_[session.task];
  entry.member.task = session.task;
  entry.member.observer = true;
  return entry;
}

void Roster::accept(Time now, Entry& entry, const Session& session,
                    const RegisterRequest& request) {
  Member& member = entry.member;
  if (member.incarnation != session.incarnation) gone_.insert(member.incarnation);
  member.incarnation = session.incarnation;
  member.place = request.place;
  if (!entry.address_given) member.address = request.address;
  member.state = TaskState::kAlive;
  member.figures.clear();
  entry.since = now;
  entry.heard = now;
  entry.suspect_until.reset();
  entry.seen = 0;
  entry.refused.clear();
  ++version_;
  if (!member.observer) {
    highest_term_seen_ = std::max(highest_term_seen_, request.term_seen);
    highest_generation_seen_ = std::max(highest_generation_seen_, request.generation_seen);
    if (started()) {
      generation_ = std::max(generation_, request.generation_seen) + 1;
      if (request.term_seen > term_) term_ = request.term_seen + 1;
      membership_changed();
    }
  }
  if (started()) {
    add_event(EventKind::kJoined, member, "");
  } else {
    if (!member.observer && !first_came_) first_came_ = now;
    start_if_complete(now);
  }
}

bool Roster::is_complete() const {
  return std::all_of(entries_.begin(), entries_.end(), [&](const auto& one) {
    const auto& [task, entry] = one;
    const bool awaited = !entry.member.observer && options_.late_jobs.count(task.job) == 0;
    return !awaited || entry.member.state == TaskState::kAlive;
  });
}

void Roster::start_if_complete(Time now) {
  if (options_.elastic ? may_start(now) : is_complete()) start();
}

void Roster::start() {
  term_ = highest_term_seen_ + 1;
  generation_ = highest_generation_seen_ + 1;
  if (!options_.elastic) return;
  ++version_;
  mark_lost_of_record();
  membership_changed();
}

bool Roster::has_ended(const Entry& entry, uint64_t incarnation) const {
  return std::find(entry.ended.begin(), entry.ended.end(), incarnation) != entry.ended.end();
}

void Roster::refuse(const Session& session, std::string_view why) {
  ++stale_refused_;
  std::rethrow_exception(rpc::make_error(
      Code::kAborted,
      str("fenced, generation ", generation_, ": ", why, " (",
          rpc::printable(to_string(session.task)), ", incarnation ", hex(session.incarnation), ")"),
      "",
      {.peer = to_string(session.task),
       .incarnation = session.incarnation,
       .generation = generation_,
       .phase = "membership"}));
}

Roster::Entry& Roster::live(const Session& session) {
  const auto found = entries_.find(session.task);
  const bool known = found != entries_.end();
  if (known && has_ended(found->second, session.incarnation)) {
    refuse(session, "this incarnation was declared lost or has left");
  }
  if (!known || found->second.member.state != TaskState::kAlive ||
      found->second.member.incarnation != session.incarnation) {
    throw NotFoundError(str(rpc::printable(to_string(session.task)), ", incarnation ",
                            hex(session.incarnation),
                            ", is not registered at this coordination service"));
  }
  return found->second;
}

void Roster::heard(Time now, const Session& session, int64_t seen) {
  Entry& entry = live(session);
  entry.heard = now;
  entry.seen = std::max(entry.seen, std::min(seen, version_));
  if (entry.suspect_until && seen >= entry.suspect_version) entry.suspect_until.reset();
}

void Roster::check_generation(const Session& session, int64_t generation) {
  if (generation != 0 && generation != generation_) {
    refuse(session, str("the call is of generation ", generation));
  }
}

std::exception_ptr Roster::ended_since(int64_t generation) const {
  if (generation == 0 || generation >= generation_) return nullptr;
  for (const Event& event : events_) {
    if (event.kind != EventKind::kLost && event.kind != EventKind::kLeft) continue;
    std::exception_ptr error = rpc::decode_error(event.error);
    if (rpc::detail_of(error).generation > generation) return error;
  }
  return nullptr;
}

void Roster::set_figures(const Session& session, Figures figures) {
  live(session).member.figures = std::move(figures);
}

void Roster::connection_lost(Time now, const Session& session) {
  const auto found = entries_.find(session.task);
  if (found == entries_.end() || live_incarnation(session.task) != session.incarnation) {
    return;
  }
  Entry& entry = found->second;
  if (!entry.suspect_until) entry.suspect_until = now + options_.heartbeat.reconnect_grace;
  entry.suspect_version = ping();
}

void Roster::process_gone(Time now, const Session& session) {
  if (live_incarnation(session.task) != session.incarnation) return;
  gone_.insert(session.incarnation);
  end(now, entries_[session.task], TaskState::kLost, "its process has ended");
}

void Roster::leave(Time now, const Session& session, const std::string& where) {
  end(now, live(session), TaskState::kLeft, where.empty() ? "" : " " + rpc::printable(where));
}

void Roster::report(const Session& session, const std::string& error) {
  const Member member = live(session).member;
  ++version_;
  add_event(EventKind::kReported, member, error);
}

void Roster::fail(const std::exception_ptr& error) {
  if (failed()) return;
  failure_ = rpc::encode_error(error);
  ++version_;
}

void Roster::throw_failure() const {
  if (failed()) std::rethrow_exception(rpc::decode_error(failure_));
}

void Roster::end(Time now, Entry& entry, TaskState state, const std::string& why) {
  Member& member = entry.member;
  ++version_;
  if (started() && !member.observer) {
    ++generation_;
    membership_changed();
  }
  if (state == TaskState::kLeft) gone_.insert(member.incarnation);
  const std::string name = to_string(member.task) + where_text(member.address);
  const std::string text =
      state == TaskState::kLeft ? str("task left", why, ": ", name) : str("lost ", name, ": ", why);
  const ErrorDetail detail = {.peer = to_string(member.task),
                              .incarnation = member.incarnation,
                              .generation = generation_,
                              .phase = started() ? "running" : "start"};
  std::exception_ptr error =
      rpc::make_error(Code::kUnavailable, text, to_string(member.task), detail);
  // Before a takeover a task may turn to another service, and come back.
  const bool may_return = options_.elastic && !started() && state == TaskState::kLost;
  if (!may_return) entry.ended.push_back(member.incarnation);
  if (entry.ended.size() > kMostEnded) entry.ended.pop_front();
  const bool is_as_planned =
      state == TaskState::kLeft && (why.empty() || why.ends_with(kEndOfProgram));
  ended_.push_back({{member.task, member.incarnation}, error, is_as_planned, may_return});
  // Before the start a task that went is simply awaited again.
  member.state = started() || member.observer ? state : TaskState::kAwaited;
  entry.since = now;
  entry.suspect_until.reset();
  if (started()) {
    add_event(state == TaskState::kLeft ? EventKind::kLeft : EventKind::kLost, member,
              rpc::encode_error(error));
  }
}

void Roster::expire(Time now) {
  const HeartbeatSettings& heartbeat = options_.heartbeat;
  for (auto& [task, entry] : entries_) {
    if (entry.member.state != TaskState::kAlive) continue;
    if (entry.suspect_until && now >= *entry.suspect_until) {
      end(now, entry, TaskState::kLost,
          str("its connection broke, and it did not call again within ",
              std::chrono::duration_cast<std::chrono::milliseconds>(heartbeat.reconnect_grace)
                  .count(),
              " ms"));
    } else if (now - entry.heard >= heartbeat.dead_after) {
      end(now, entry, TaskState::kLost,
          str("it was last heard of ", in_seconds(now - entry.heard), " ago"));
    }
  }
  if (options_.elastic && !started() && !failed()) start_if_complete(now);
}

void Roster::restart_silence(Time now) {
  for (auto& [task, entry] : entries_) {
    entry.heard = now;
    if (entry.suspect_until) entry.suspect_until = now + options_.heartbeat.reconnect_grace;
  }
}

std::optional<Roster::Time> Roster::next_expiry() const {
  std::optional<Time> next = next_start();
  for (const auto& [task, entry] : entries_) {
    if (entry.member.state != TaskState::kAlive) continue;
    Time due = entry.heard + options_.heartbeat.dead_after;
    if (entry.suspect_until) due = std::min(due, *entry.suspect_until);
    next = next ? std::min(*next, due) : due;
  }
  return next;
}

bool Roster::has_seen(const TaskId& task, int64_t version) const {
  const auto found = entries_.find(task);
  return found != entries_.end() && found->second.member.state == TaskState::kAlive &&
         found->second.seen >= version;
}

std::optional<uint64_t> Roster::live_incarnation(const TaskId& task) const {
  const auto found = entries_.find(task);
  if (found == entries_.end() || found->second.member.state != TaskState::kAlive) {
    return std::nullopt;
  }
  return found->second.member.incarnation;
}

void Roster::add_event(EventKind kind, const Member& member, std::string error) {
  events_.push_back({version_, kind, member.task, member.incarnation, std::move(error)});
  if (events_.size() > kMostEvents) events_.pop_front();
}

View Roster::base_view() const {
  View view{.service = service_,
            .term = term_,
            .version = version_,
            .generation = generation_,
            .members = {},
            .failure = failure_,
            .events = {},
            .stale_refused = {},
            .coordinator = options_.elastic ? options_.elastic->self : TaskId{},
            .bases = bases_,
            .agreed = options_.elastic && agreed_};
  view.members.reserve(entries_.size());
  return view;
}

View Roster::view(int64_t since) const {
  View view = base_view();
  for (const auto& [task, entry] : entries_) {
    view.members.push_back(entry.member);
    view.members.back().figures.clear();
  }
  for (const Event& event : events_) {
    if (event.version > since) view.events.push_back(event);
  }
  return view;
}

View Roster::status(Time now) const {
  View view = base_view();
  view.stale_refused = stale_refused_;
  for (const auto& [task, entry] : entries_) {
    view.members.push_back(entry.member);
    view.members.back().state_age = now - entry.since;
    if (entry.member.incarnation != 0) view.members.back().silence = now - entry.heard;
  }
  return view;
}

void Roster::note_refused(Time now, const TaskId& task, const std::string& why) {
  const auto found = entries_.find(task);
  if (found == entries_.end()) return;
  found->second.refused = why;
  found->second.refused_at = now;
}

std::string Roster::describe_missing(Time now) const {
  std::string text;
  size_t missing = 0;
  for (const auto& [task, entry] : entries_) {
    const Member& member = entry.member;
    if (member.observer || member.state == TaskState::kAlive ||
        options_.late_jobs.count(task.job) != 0) {
      continue;
    }
    if (++missing > kMostNamedMissing) continue;
    if (missing > 1) text += ", ";
    text += to_string(task) + " (";
    if (!member.address.empty()) text += rpc::printable(member.address) + ", ";
    if (!entry.refused.empty()) {
      text += str("refused ", in_seconds(now - entry.refused_at), " ago: ", entry.refused, ")");
      continue;
    }
    text += entry.ended.empty() ? str("not heard of for ", in_seconds(now - began_))
                                : str("gone for ", in_seconds(now - entry.since));
    text += ")";
  }
  if (missing > kMostNamedMissing) text += str(" and ", missing - kMostNamedMissing, " more");
  return text;
}

std::vector<TaskId> Roster::group() const {
  std::vector<TaskId> tasks;
  for (const auto& [task, entry] : entries_) {
    if (!entry.member.observer) tasks.push_back(task);
  }
  return tasks;
}

std::vector<Roster::Ended> Roster::take_ended() { return std::exchange(ended_, {}); }

}  // namespace cohort::internal::membership
