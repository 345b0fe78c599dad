// What the tasks of an elastic group tell each other when they form it, and what they agree on.
//
// encode() and decode(): as membership/messages.h says; the bytes of a record that contradicts
// itself are DataLoss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/program/task_id.h"

namespace cohort::internal::elastic {

inline constexpr size_t kMostProgramBytes = 1024;
// The step of a task that has no state.
inline constexpr int64_t kNoStep = -1;

// The place of a task in the work when it proposes itself as a member of the next group.
struct Standing {
  int64_t step = kNoStep;     // the last step of which it has the whole state, committed
  int64_t reached = kNoStep;  // the last step whose work it has finished: `step` or one more
  std::string program = {};   // a digest of what must be equal in all members
  bool closed = false;        // it has a state and no time for comers: they are to wait
  bool leaves = false;        // it goes, but others may take from it what only it has

  bool operator==(const Standing&) const = default;
};

// A task as it was when it proposed itself.
struct RecordMember {
  TaskId task = {};
  uint64_t incarnation = 0;
  int64_t attempt = 0;  // which of its calls has proposed: greater in a later call
  Standing standing = {};

  bool operator==(const RecordMember&) const = default;
};

// A group: what all of its members have agreed on.
struct Record {
  int64_t number = 0;    // greater than that of every record before
  int64_t previous = 0;  // the number of the one before in the service's store; 0: none
  // The service of the membership in which the group was formed, and what that one counted then.
  uint64_t service = 0;
  int64_t generation = 0;
  // In order of their tasks, which is that of their ranks. Each has proposed itself, and all were
  // alive together.
  std::vector<RecordMember> members = {};
  std::vector<RecordMember> leavers = {};  // no members: they hand over what they have, and go

  bool operator==(const Record&) const = default;

  // The step from which the group goes on: the greatest of its members and leavers; kNoStep: nobody
  // has a state.
  int64_t step() const;
  // What each member's is; a task that has another does not get in.
  const std::string& program() const { return members.front().standing.program; }
  // The rank of that process; nothing if it is no member.
  std::optional<size_t> rank_of(const TaskId& task, uint64_t incarnation) const;
  // The ranks of those that have the state of step().
  std::vector<size_t> holders() const;
  // The ranks of those that have a state, of an earlier step.
  std::vector<size_t> behind() const;
  // The ranks of those that have no state, although others have.
  std::vector<size_t> comers() const;

  std::string encode() const;
  static Record decode(std::string_view bytes);
};

// "record 7 of generation 9, step 41: /job:worker/task:0, /job:worker/task:2"
std::string describe(const Record& record);

struct Proposal {
  RecordMember proposer = {};
  // The latest record that the proposer knows, where the store has no later one.
  std::optional<Record> known = {};

  std::string encode() const;
  static Proposal decode(std::string_view bytes);
};

}  // namespace cohort::internal::elastic
