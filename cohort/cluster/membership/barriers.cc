#include "cohort/cluster/membership/barriers.h"

#include <algorithm>

#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::membership {
namespace {

constexpr size_t kMostRounds = 1024;
constexpr size_t kMostNamed = 10;

}  // namespace

std::string list_tasks(const std::vector<TaskId>& tasks) {
  std::string text;
  for (size_t i = 0; i < tasks.size() && i < kMostNamed; ++i) {
    text += (i == 0 ? "" : ", ") + rpc::printable(to_string(tasks[i]));
  }
  if (tasks.size() > kMostNamed) text += str(" and ", tasks.size() - kMostNamed, " more");
  return text;
}

std::vector<uint64_t> Barriers::arrive(const std::string& name, const std::vector<TaskId>& tasks,
                                       int64_t generation, const TaskId& task, uint64_t arrival) {
  const auto what = [&] { return str("barrier ", quoted(rpc::printable(name))); };
  if (!std::binary_search(tasks.begin(), tasks.end(), task)) {
    throw InvalidArgumentError(
        str(what(), ": ", task, " came, but the tasks are ", list_tasks(tasks)));
  }
  auto found = rounds_.find(name);
  if (found == rounds_.end()) {
    if (rounds_.size() >= kMostRounds) {
      throw ResourceExhaustedError(str(what(), ": tasks wait at ", kMostRounds,
                                       " others, which are as many as there may be"));
    }
    found = rounds_.emplace(name, Round{tasks, generation, {}}).first;
  }
  Round& round = found->second;
  if (round.tasks != tasks) {
    throw InvalidArgumentError(str(what(), " is for ", list_tasks(round.tasks), " as ",
                                   round.arrivals.begin()->first, " says, for ", list_tasks(tasks),
                                   " as ", task, " says"));
  }
  if (!round.arrivals.emplace(task, arrival).second) {
    throw FailedPreconditionError(str(what(), ": ", task, " waits there already"));
  }
  if (round.arrivals.size() < round.tasks.size()) return {};
  return take(found).arrivals;
}

std::optional<Barriers::Broken> Barriers::end_of(const std::string& name, uint64_t arrival) {
  const auto found = rounds_.find(name);
  if (found == rounds_.end()) return std::nullopt;
  const auto& arrivals = found->second.arrivals;
  const bool waits = std::any_of(arrivals.begin(), arrivals.end(),
                                 [&](const auto& entry) { return entry.second == arrival; });
  if (!waits) return std::nullopt;
  return take(found);
}

void Barriers::withdraw(const std::string& name, uint64_t arrival) {
  const auto found = rounds_.find(name);
  if (found == rounds_.end()) return;
  std::erase_if(found->second.arrivals, [&](const auto& entry) { return entry.second == arrival; });
  if (found->second.arrivals.empty()) rounds_.erase(found);
}

std::vector<Barriers::Broken> Barriers::end_with(const TaskId& task) {
  std::vector<Broken> broken;
  for (auto round = rounds_.begin(); round != rounds_.end();) {
    const auto next = std::next(round);
    const std::vector<TaskId>& tasks = round->second.tasks;
    if (std::binary_search(tasks.begin(), tasks.end(), task)) broken.push_back(take(round));
    round = next;
  }
  return broken;
}

std::vector<Barriers::Broken> Barriers::end_others(int64_t generation) {
  std::vector<Broken> broken;
  for (auto round = rounds_.begin(); round != rounds_.end();) {
    const auto next = std::next(round);
    const int64_t bound = round->second.generation;
    if (bound != 0 && bound != generation) broken.push_back(take(round));
    round = next;
  }
  return broken;
}

Barriers::Broken Barriers::take(Rounds::iterator round) {
  Broken broken{.name = round->first, .arrivals = {}, .missing = {}};
  for (const TaskId& task : round->second.tasks) {
    const auto arrival = round->second.arrivals.find(task);
    if (arrival == round->second.arrivals.end()) {
      broken.missing.push_back(task);
    } else {
      broken.arrivals.push_back(arrival->second);
    }
  }
  rounds_.erase(round);
  return broken;
}

}  // namespace cohort::internal::membership
