// Decides to whose coordination service a task of an elastic cluster turns, by what all tasks say.
#pragma once

#include <map>
#include <optional>

#include "cohort/cluster/membership/messages.h"

namespace cohort::internal::membership {

// A task that has not said by then what it is doing counts as out of reach.
inline constexpr Duration kSilentIsAway = std::chrono::milliseconds(250);
// A wait of so many dead_after is long.
inline constexpr int kLongWaits = 2;

// Whether the service that `task` holds, or prepares, stands before another one: one that has
// started before one that has not, then the one that knows of the later term, then the one that its
// members have acknowledged, then the lower task's.
bool goes_before(const TaskId& task, const Standing& standing, const TaskId& other,
                 const Standing& others);

// Whether the service of `self` gives way to that of `task`. `waits_long`: its group has not
// counted for much longer than it takes to learn of a loss; then what it knows of later terms has
// come to nothing.
bool gives_way(const TaskId& self, const Standing& own, bool waits_long, const TaskId& task,
               const Standing& other);

struct SearchInput {
  TaskId self;
  int64_t term_seen = 0;     // the highest of this task
  uint64_t service = 0;      // the last one that this task was registered at
  bool waits_long = false;   // as in gives_way
  bool may_prepare = false;  // whether this task may hold the service of a group
  // What tasks have said, also this one. A task that could not be reached is not in it.
  std::map<TaskId, Standing> standings;
  bool is_complete = false;  // whether no answer is outstanding
};

struct SearchResult {
  std::optional<TaskId> turn_to;  // whose service this task registers at; nothing: it asks again
  bool prepare = false;           // it is this task itself, which has none yet
};

SearchResult decide(const SearchInput& input);

}  // namespace cohort::internal::membership
