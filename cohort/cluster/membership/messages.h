// What tasks and the coordination service say to each other: membership.proto, as structs.
//
// encode() gives protobuf's wire format. decode() takes any bytes: DataLoss where they are cut short
// or malformed, InvalidArgument where they exceed a limit below; it takes no memory that the bytes
// do not account for. Unknown fields are passed over. Names that are not UTF-8 are refused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/membership/settings.h"
#include "cohort/core/task_id.h"

namespace cohort::internal::membership {

// A task with another major version is refused, one with another minor version is not.
inline constexpr int kProtocolMajor = 1;
inline constexpr int kProtocolMinor = 0;

inline constexpr size_t kMostTasks = 16384;
inline constexpr size_t kMostSections = 32;
inline constexpr size_t kMostSectionBytes = 64 << 10;
inline constexpr size_t kMostSpecBytes = 1 << 20;
inline constexpr size_t kMostFigures = 32;
inline constexpr size_t kMostNameBytes = 256;
inline constexpr size_t kMostEvents = 256;
inline constexpr size_t kMostKeyBytes = 1 << 10;
inline constexpr size_t kMostValueBytes = 1 << 20;
inline constexpr size_t kMostListed = 1024;

// A part of what makes two programs the same: "functions", "variables", "numeric environment".
struct Section {
  std::string name = {};
  std::string text = {};  // compared line by line
  bool strict = true;  // a difference is an error; else a warning, unless the other side is strict
};

struct RegisterRequest {
  int protocol_major = kProtocolMajor;
  int protocol_minor = kProtocolMinor;
  std::string address = {};  // where the task listens
  std::string cluster_spec =
      {};  // printed; "rendezvous of 4 tasks" where addresses are not known yet
  std::vector<Section> program = {};
  // Of the group that the task has left: it takes nothing from it any more. 0: it was in none.
  int64_t term_seen = 0;
  int64_t generation_seen = 0;

  std::string encode() const;
  static RegisterRequest decode(std::string_view bytes);
};

struct RegisterReply {
  uint64_t service = 0;  // the service's incarnation
  HeartbeatSettings heartbeat;
  std::vector<std::string> warnings = {};

  std::string encode() const;
  static RegisterReply decode(std::string_view bytes);
};

// A number that a task makes known: steps per second, say.
using Figures = std::map<std::string, double>;

struct HeartbeatRequest {
  int64_t seen = 0;  // the version of the view that the task has
  Figures figures = {};

  std::string encode() const;
  static HeartbeatRequest decode(std::string_view bytes);
};

struct HeartbeatReply {
  int64_t version = 0;

  std::string encode() const;
  static HeartbeatReply decode(std::string_view bytes);
};

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

// Who is in the cluster. Of one term and generation there is one set of members.
struct View {
  uint64_t service = 0;              // the service's incarnation
  int64_t term = 0;                  // how many services the cluster has had
  int64_t version = 0;               // of this service's views
  int64_t generation = 0;            // 0: not started
  std::vector<Member> members = {};  // in order of their tasks
  std::string failure = {};          // encode_error's: the group has ended
  std::vector<Event> events = {};    // since the version that was asked for

  const Member* find(const TaskId& task) const;
  // Whether all tasks that are awaited are alive.
  bool complete() const;

  std::string encode() const;
  static View decode(std::string_view bytes);
};

// Of `attend`, too: a call that is kept open only so that the end of its connection shows at once.
struct WatchRequest {
  int64_t since = 0;    // answered when there is a later version,
  Duration at_most{0};  // or after so long

  std::string encode() const;
  static WatchRequest decode(std::string_view bytes);
};

struct LeaveRequest {
  std::string where = {};  // "at step 41"

  std::string encode() const;
  static LeaveRequest decode(std::string_view bytes);
};

struct ReportRequest {
  std::string error = {};  // encode_error's

  std::string encode() const;
  static ReportRequest decode(std::string_view bytes);
};

struct DeclareRequest {
  std::vector<Section> program = {};

  std::string encode() const;
  static DeclareRequest decode(std::string_view bytes);
};

struct DeclareReply {
  std::vector<std::string> warnings = {};

  std::string encode() const;
  static DeclareReply decode(std::string_view bytes);
};

struct BarrierRequest {
  uint64_t id = 0;  // the task's number of this request: a repetition has the same
  std::string name = {};
  std::vector<TaskId> tasks = {};  // none: all of the group
  int64_t generation = 0;          // 0: any
  Duration at_most{0};

  std::string encode() const;
  static BarrierRequest decode(std::string_view bytes);
};

// Of all calls to the store; each uses some fields.
struct StoreRequest {
  uint64_t id = 0;
  std::string key = {};  // list: the prefix
  std::string value = {};
  std::optional<std::string> expected = {};  // compare_and_set; nothing: the key is absent
  int64_t delta = 0;                         // add
  bool session = false;    // set, add, compare_and_set: goes when this incarnation does
  int64_t generation = 0;  // 0: any
  Duration at_most{0};     // get: how long it waits for the key
  std::string after = {};  // list: keys behind this one

  std::string encode() const;
  static StoreRequest decode(std::string_view bytes);
};

struct StoreReply {
  bool done = false;  // set, compare_and_set, remove: it changed something; get: there is a value
  std::string value = {};
  bool has_value = false;
  int64_t number = 0;                  // add: the sum
  std::vector<std::string> keys = {};  // list
  bool more = false;                   // list: there are more behind the last

  bool operator==(const StoreReply&) const = default;
  std::string encode() const;
  static StoreReply decode(std::string_view bytes);
};

// Errors: InvalidArgument (empty, longer than `most` bytes, not UTF-8); the text begins with `what`.
void check_name(std::string_view what, std::string_view name, size_t most);

// "9f3a61...": as texts and tables show incarnations.
std::string hex(uint64_t incarnation);

}  // namespace cohort::internal::membership
