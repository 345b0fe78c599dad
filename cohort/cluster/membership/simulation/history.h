// What the calls of a simulated cluster to its store and barriers may answer: each as if it had
// happened in one instant between its beginning and its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cohort/core/program/task_id.h"

namespace cohort::internal::membership {

// One counter to which tasks add 1, one register that they set to values of their own and read, and
// barriers, for each service of a history: a new one begins with nothing. Thread safety: none.
class StoreHistory {
 public:
  using Time = std::chrono::nanoseconds;

  // An empty text, or what is wrong. `floor`: what begin_add has given.
  int64_t begin_add();
  int64_t floor(uint64_t service) const;
  std::string end_add(uint64_t service, int64_t floor, int64_t sum);

  // The value to set.
  std::string begin_set(Time now);
  void end_set(const std::string& value, uint64_t service, Time now);
  std::string end_get(uint64_t service, Time begin, const std::optional<std::string>& value);

  void begin_barrier(const std::string& name, const TaskId& task);
  std::string end_barrier(const std::string& name, const std::vector<TaskId>& tasks) const;

 private:
  struct Write {
    Time begin;
    std::optional<Time> end;
    uint64_t service = 0;  // that answered
  };
  int64_t adds_ = 0;
  std::map<uint64_t, std::set<int64_t>> sums_;
  std::map<std::string, Write> writes_;
  std::map<std::string, std::set<TaskId>> arrived_;
};

}  // namespace cohort::internal::membership
