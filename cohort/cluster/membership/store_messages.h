// Calls to barriers and to the store. encode() and decode(): as messages.h says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/membership/settings.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::membership {

struct BarrierRequest {
  uint64_t id = 0;  // the task's number of this request: a repetition has the same
  // The oldest of the task's arrivals at barriers that it still waits for, this one too: answers to
  // those before are not needed any more.
  uint64_t oldest = 0;
  std::string name = {};
  std::vector<TaskId> tasks = {};  // none: all of the group
  int64_t generation = 0;          // 0: any
  Duration at_most{0};

  std::string encode() const;
  static BarrierRequest decode(std::string_view bytes);
};

// The request of all calls to the store; each uses some fields.
struct StoreRequest {
  uint64_t id = 0;
  uint64_t oldest = 0;   // as a barrier's, of calls of the same method
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

}  // namespace cohort::internal::membership
