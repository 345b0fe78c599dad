// The rules of elastic clusters: who may start a group, and when a group counts.
#include <algorithm>

#include "cohort/cluster/membership/roster.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {

void Roster::take_record() {
  agreed_ = false;
  record_ = options_.elastic->record;
  highest_term_seen_ = record_.term;
  highest_generation_seen_ = record_.generation;
}

// A task that comes to a takeover may have had a later view than this one's.
void Roster::learn_record(const RegisterRequest& request) {
  if (request.record.empty()) return;
  View told = View::decode(request.record);
  if (told.generation <= 0 || !told.is_later(record_)) return;
  if (started() && told.term >= term_) return;  // its own
  highest_term_seen_ = std::max(highest_term_seen_, told.term);
  highest_generation_seen_ = std::max(highest_generation_seen_, told.generation);
  if (started()) {
    // The task was in that group after it had come here first: that group may count.
    for (Membership& base : told.bases) bases_.push_back(std::move(base));
    bases_.push_back(told.live());
    ++version_;
    membership_changed();
  }
  record_ = std::move(told);
}

// While a group is taken over its members may come later than processes that are started anew.
void Roster::check_predecessor(Time now, const Session& session) {
  if (started() || now - began_ >= options_.heartbeat.dead_after) return;
  const Member* const before = record_.find(session.task);
  if (before == nullptr || before->state != TaskState::kAlive ||
      before->incarnation == session.incarnation ||
      presence({before->task, before->incarnation}) != Presence::kAway) {
    return;
  }
  throw UnavailableError(
      str("the predecessor of this ", session.task, " may still be alive; ask again"));
}

Membership Roster::live() const {
  Membership found;
  for (const auto& [task, entry] : entries_) {
    if (entry.member.observer || entry.member.state != TaskState::kAlive) continue;
    found.members.push_back({task, entry.member.incarnation});
  }
  return found;
}

Presence Roster::presence(const Session& session) {
  const auto found = entries_.find(session.task);
  if (found == entries_.end()) return Presence::kAway;
  const Member& member = found->second.member;
  if (member.incarnation == session.incarnation && member.state == TaskState::kAlive) {
    return Presence::kHere;
  }
  if (gone_.count(session.incarnation) != 0) return Presence::kGone;
  // A process answers at the task's address, so its predecessor does not.
  if (member.state == TaskState::kAlive) {
    gone_.insert(session.incarnation);
    return Presence::kGone;
  }
  const Member* const recorded = record_.find(session.task);
  const Member* const known = member.incarnation == session.incarnation ? &member : recorded;
  if (known == nullptr || known->incarnation != session.incarnation) return Presence::kAway;
  const bool is_gone = known->state == TaskState::kLeft || options_.elastic->is_dead(*known);
  if (!is_gone) return Presence::kAway;
  gone_.insert(session.incarnation);
  return Presence::kGone;
}

bool Roster::has_majority() {
  const auto is_backed = [&](const Membership& base) {
    return is_majority(base, [&](const Session& session) { return presence(session); });
  };
  if (started()) return std::all_of(bases_.begin(), bases_.end(), is_backed);
  return is_backed(record_.live()) &&
         std::all_of(record_.bases.begin(), record_.bases.end(), is_backed);
}

bool Roster::may_start(Time now) {
  const ElasticRoster& rules = *options_.elastic;
  const size_t alive = live().members.size();
  if (record_.generation == 0) {
    if (is_complete()) return true;
    return alive >= static_cast<size_t>(rules.min_tasks) && first_came_ &&
           now - *first_came_ >= rules.start_wait;
  }
  if (alive == 0 || !has_majority()) {
    majority_since_.reset();
    return false;
  }
  if (!majority_since_) majority_since_ = now;
  // Tasks notice at different times that the service is lost, and one may stand still for a while.
  if (now - *majority_since_ >= options_.heartbeat.dead_after) return true;
  const Membership before = record_.live();
  return std::all_of(before.members.begin(), before.members.end(), [&](const Session& session) {
    return session.task == record_.coordinator || absent_.count(session.task) != 0 ||
           presence(session) != Presence::kAway;
  });
}

void Roster::absent(Time now, const TaskId& task) {
  if (started() || failed() || live_incarnation(task)) return;
  absent_.insert(task);
  start_if_complete(now);
}

std::optional<Roster::Time> Roster::next_start() const {
  if (!options_.elastic || started() || failed()) return std::nullopt;
  if (majority_since_) return *majority_since_ + options_.heartbeat.dead_after;
  if (record_.generation > 0 || !first_came_) return std::nullopt;
  if (live().members.size() < static_cast<size_t>(options_.elastic->min_tasks)) return std::nullopt;
  return *first_came_ + options_.elastic->start_wait;
}

// The members of the group before that have not come are lost with its service.
void Roster::mark_lost_of_record() {
  bases_ = record_.bases;
  if (record_.generation > 0 && !record_.agreed) bases_.push_back(record_.live());
  for (const Member& before : record_.members) {
    const auto found = entries_.find(before.task);
    if (found == entries_.end() || before.incarnation == 0) continue;
    Entry& entry = found->second;
    const bool is_here = entry.member.state == TaskState::kAlive;
    if (is_here && entry.member.incarnation == before.incarnation) continue;
    entry.ended.push_back(before.incarnation);
    const bool was_alive = before.state == TaskState::kAlive;
    Member lost = before;
    lost.state = was_alive ? TaskState::kLost : before.state;
    if (!is_here) {
      if (entry.address_given) lost.address = entry.member.address;
      entry.member = lost;
    }
    if (!was_alive || before.observer) continue;
    const std::string name = to_string(before.task);
    const std::string text =
        str("lost ", name, " (", rpc::printable(before.address),
            "): it did not come when the coordination service moved to ", options_.elastic->self);
    add_event(EventKind::kLost, lost,
              rpc::encode_error(rpc::make_error(Code::kUnavailable, text, name,
                                                {.peer = name,
                                                 .incarnation = before.incarnation,
                                                 .generation = generation_,
                                                 .phase = "running"})));
  }
  const Membership now = live();
  const Membership before = record_.live();
  for (const Session& session : now.members) {
    const bool is_new =
        std::find(before.members.begin(), before.members.end(), session) == before.members.end();
    if (is_new && record_.generation > 0) {
      add_event(EventKind::kJoined, entries_[session.task].member, "");
    }
  }
}

void Roster::membership_changed() {
  if (!options_.elastic) return;
  membership_version_ = version_;
  agreed_ = false;
}

void Roster::agree() {
  if (agreed_ || !started() || failed()) return;
  for (const auto& [task, entry] : entries_) {
    const Member& member = entry.member;
    if (member.observer || member.state != TaskState::kAlive) continue;
    if (entry.seen < membership_version_) return;
  }
  if (!has_majority()) return;
  bases_ = {live()};
  agreed_ = true;
  ++version_;
}

}  // namespace cohort::internal::membership
