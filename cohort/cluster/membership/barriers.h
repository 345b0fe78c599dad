// Named points at which tasks of a cluster wait for each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/program/task_id.h"

namespace cohort::internal::membership {

// Each task of a round's list arrives once; the last one opens it, and the name may be used again.
// An arrival is a number that the user of this class gives. Thread safety: none.
class Barriers {
 public:
  // The arrivals that may go on: none until the last task has come.
  // Errors, after which the round is as it was: InvalidArgument (the task is not of the list; the
  // list is another one than that of who came first: names both), FailedPrecondition (the task is
  // there already), ResourceExhausted (too many rounds at once).
  // `generation`: the round ends with it; 0: it does not.
  std::vector<uint64_t> arrive(const std::string& name, const std::vector<TaskId>& tasks,
                               int64_t generation, const TaskId& task, uint64_t arrival);

  // A round that ended before all had come.
  struct Broken {
    std::string name;
    std::vector<uint64_t> arrivals;
    std::vector<TaskId> missing;  // who had not come
  };
  // Ends the round in which this arrival waits; nothing if it waits in none.
  std::optional<Broken> end_of(const std::string& name, uint64_t arrival);
  // Takes the arrival back, as if the task had not come; nothing if it waits in no round.
  void withdraw(const std::string& name, uint64_t arrival);
  // Ends the rounds that have the task in their lists.
  std::vector<Broken> end_with(const TaskId& task);
  // Ends the rounds of other generations than this.
  std::vector<Broken> end_others(int64_t generation);

  size_t size() const { return rounds_.size(); }

 private:
  struct Round {
    std::vector<TaskId> tasks;  // in order
    int64_t generation = 0;
    std::map<TaskId, uint64_t> arrivals;
  };
  using Rounds = std::map<std::string, Round, std::less<>>;

  Broken take(Rounds::iterator round);

  Rounds rounds_;
};

// "/job:worker/task:1, /job:worker/task:2 and 14 more".
std::string list_tasks(const std::vector<TaskId>& tasks);

}  // namespace cohort::internal::membership
