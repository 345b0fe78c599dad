#include "cohort/cluster/membership/view.h"

#include <algorithm>

#include "cohort/cluster/membership/limits.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {
namespace {

void check_kind(EventKind kind) {
  if (kind < EventKind::kJoined) throw DataLossError("an event of an unknown kind");
}

}  // namespace

void fields(auto& f, Member& member) {
  f(1, member.task);
  f(2, member.incarnation);
  f(3, member.address, AtMostText{"an address", kMostNameBytes});
  f(4, member.state, TaskState::kLeft);
  f(5, member.observer);
  f(6, member.state_age);
  f(7, member.silence);
  f(8, member.figures, kFigures, kFigureName);
  f(9, member.place, AtMostText{"a process's place", kMostNameBytes});
}

void fields(auto& f, Event& event) {
  f(1, event.version);
  f(2, event.kind, kAlways, EventKind::kReported, check_kind);
  f(3, event.task);
  f(4, event.incarnation);
  f(5, event.error, AtMostBytes{"an error", kMostErrorBytes});
}

void fields(auto& f, Session& session) {
  f(1, session.task);
  f(2, session.incarnation);
}

void fields(auto& f, Membership& membership) {
  f(1, membership.members, AtMost{"members", kMostTasks});
}

void fields(auto& f, View& view) {
  f(1, view.service);
  f(2, view.term);
  f(3, view.version);
  f(4, view.generation);
  f(5, view.members, AtMost{"members", kMostTasks});
  f(6, view.failure, AtMostBytes{"an error", kMostErrorBytes});
  f(7, view.events, AtMost{"events", kMostEvents});
  f(8, view.stale_refused);
  f(9, view.coordinator);
  f(10, view.bases, AtMost{"memberships", kMostBases});
  f(11, view.agreed);
}

std::string_view state_name(TaskState state) {
  switch (state) {
    case TaskState::kAwaited:
      return "awaited";
    case TaskState::kAlive:
      return "alive";
    case TaskState::kLost:
      return "lost";
    case TaskState::kLeft:
      return "left";
  }
  return "unknown";
}

Membership View::live() const {
  Membership found;
  for (const Member& member : members) {
    if (member.observer || member.state != TaskState::kAlive) continue;
    found.members.push_back({member.task, member.incarnation});
  }
  return found;
}

bool View::is_later(const View& other) const {
  return term != other.term ? term > other.term : version > other.version;
}

const Member* View::find(const TaskId& task) const {
  const auto found = std::lower_bound(
      members.begin(), members.end(), task,
      [](const Member& member, const TaskId& wanted) { return member.task < wanted; });
  return found != members.end() && found->task == task ? &*found : nullptr;
}

bool View::complete() const {
  return std::all_of(members.begin(), members.end(), [](const Member& member) {
    return member.observer || member.state == TaskState::kAlive;
  });
}

std::string View::encode() const { return encode_fields(*this); }
View View::decode(std::string_view bytes) {
  auto view = decode_fields<View>(bytes, "a view of the cluster");
  std::sort(view.members.begin(), view.members.end(),
            [](const Member& left, const Member& right) { return left.task < right.task; });
  return view;
}

}  // namespace cohort::internal::membership
