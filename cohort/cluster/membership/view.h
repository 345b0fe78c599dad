// The members of a cluster, as its coordination service tells its tasks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/membership/majority.h"
#include "cohort/cluster/membership/settings.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::membership {

// A number that a task makes known: steps per second, say.
using Figures = std::map<std::string, double>;

enum class TaskState {
  kAwaited = 0,  // not registered yet
  kAlive = 1,
  kLost = 2,
  kLeft = 3,
};
std::string_view state_name(TaskState state);

struct Member {
  TaskId task = {};
  uint64_t incarnation = 0;
  std::string address = {};
  TaskState state = TaskState::kAwaited;
  bool observer = false;  // not of the group: an evaluator
  // Only in a status: how long it has been in this state, when it was last heard of.
  std::optional<Duration> state_age = {};
  std::optional<Duration> silence = {};
  Figures figures = {};
  // The place where the process of an elastic cluster's task runs (process_place()).
  std::string place = {};

  bool operator==(const Member&) const = default;
};

enum class EventKind {
  kJoined = 1,  // a task came after the start
  kLost = 2,
  kLeft = 3,
  kReported = 4,  // a task tells all others of an error of its own
};

struct Event {
  int64_t version = 0;  // of the first view that has it
  EventKind kind = EventKind::kJoined;
  TaskId task = {};
  uint64_t incarnation = 0;
  std::string error = {};  // encode_error's; not of kJoined

  bool operator==(const Event&) const = default;
};

// The members of the cluster. One term and generation has one set of members.
struct View {
  uint64_t service = 0;              // the service's incarnation
  int64_t term = 0;                  // how many services the cluster has had
  int64_t version = 0;               // of this service's views
  int64_t generation = 0;            // 0: not started
  std::vector<Member> members = {};  // in order of their tasks
  std::string failure = {};          // encode_error's: the group has ended
  std::vector<Event> events = {};    // since the version that was asked for
  // Only in a status: calls of stale incarnations and generations that the service has refused.
  std::optional<int64_t> stale_refused = {};
  // Elastic clusters have these: the task whose service it is, and the memberships of which a
  // majority must be in the next one. That is the last one that all of its members have
  // acknowledged; besides, after a service was lost, those that may have been acknowledged since.
  TaskId coordinator = {};
  std::vector<Membership> bases = {};
  // Whether all live members have acknowledged that they are the group. Before that a group of an
  // elastic cluster may turn out to be none.
  bool agreed = false;

  // The members that are alive; observers are none.
  Membership live() const;
  // Whether it is of a later service than `other`, or later of the same.
  bool is_later(const View& other) const;
  const Member* find(const TaskId& task) const;
  // Whether all tasks that are awaited are alive.
  bool complete() const;

  std::string encode() const;
  static View decode(std::string_view bytes);
};

}  // namespace cohort::internal::membership
