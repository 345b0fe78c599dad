// The messages between tasks and the coordination service: membership.proto, as structs.
//
// encode() gives protobuf's wire format. decode() takes any bytes: DataLoss where they are cut
// short or malformed, InvalidArgument where they exceed a limit of limits.h; it takes no memory
// that the bytes do not account for. Unknown fields are passed over. Names that are not UTF-8 are
// refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/membership/limits.h"
#include "cohort/cluster/membership/settings.h"
#include "cohort/cluster/membership/store_messages.h"
#include "cohort/cluster/membership/view.h"

namespace cohort::internal::membership {

// A task with another major version is refused, one with another minor version is not.
inline constexpr int kProtocolMajor = 1;
inline constexpr int kProtocolMinor = 0;

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
  // The term of the group that the task has left: it takes nothing from it any more. 0: it was in
  // none.
  int64_t term_seen = 0;
  int64_t generation_seen = 0;
  // What tasks of elastic clusters add: the last view that they have had of a group, and where the
  // process is.
  std::string record = {};
  std::string place = {};

  std::string encode() const;
  static RegisterRequest decode(std::string_view bytes);
};

struct RegisterReply {
  uint64_t service = 0;  // the service's incarnation
  HeartbeatSettings heartbeat = {};
  std::vector<std::string> warnings = {};

  std::string encode() const;
  static RegisterReply decode(std::string_view bytes);
};

// What a task of an elastic cluster is doing about the coordination service.
enum class Stage {
  kSearches = 0,  // it has lost it, or has found none yet
  kObeys = 1,     // it is registered at another task's
  kPrepares = 2,  // it holds one whose group has not started
  kHolds = 3,     // it holds one whose group has started
  kEnded = 4,     // it is no member any more
};

// The answer to `standing`.
struct Standing {
  Stage stage = Stage::kSearches;
  int64_t term_seen = 0;  // the highest
  // kPrepares, kHolds:
  uint64_t service = 0;  // its incarnation
  int64_t term = 0;
  bool agreed = false;  // whether the members have acknowledged their group

  std::string encode() const;
  static Standing decode(std::string_view bytes);
};

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

// The request of `watch` and of `attend`, a call that is kept open only so that the end of its
// connection shows at once.
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

}  // namespace cohort::internal::membership
