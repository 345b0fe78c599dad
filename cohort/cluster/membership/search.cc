#include "cohort/cluster/membership/search.h"

#include <tuple>

namespace cohort::internal::membership {
namespace {

auto rank(const TaskId& task, const Standing& standing) {
  const bool holds = standing.stage == Stage::kHolds;
  const int64_t term = holds ? standing.term : standing.term_seen;
  return std::tuple(!holds, -term, !standing.agreed, task);
}

}  // namespace

bool goes_before(const TaskId& task, const Standing& standing, const TaskId& other,
                 const Standing& others) {
  if (standing.stage != Stage::kHolds && standing.stage != Stage::kPrepares) return false;
  // A group that a task has left behind is no reason to give way.
  if (standing.stage == Stage::kHolds && others.stage != Stage::kHolds &&
      standing.term < others.term_seen) {
    return false;
  }
  return rank(task, standing) < rank(other, others);
}

bool gives_way(const TaskId& self, const Standing& own, bool waits_long, const TaskId& task,
               const Standing& other) {
  const bool counts = other.stage == Stage::kHolds && other.agreed;
  if (own.stage == Stage::kPrepares) {
    // Others are in a group whose service this task cannot reach: it must not begin another.
    const bool has_group =
        own.term_seen == 0 && other.stage == Stage::kObeys && other.term_seen > 0;
    return has_group || (waits_long && counts) || goes_before(task, other, self, own);
  }
  if (own.stage != Stage::kHolds) return false;
  if (own.agreed) {
    return counts && (other.term > own.term || (other.term == own.term && task < self));
  }
  if (counts && other.term > own.term) return true;
  return waits_long && (counts || goes_before(task, other, self, own));
}

SearchResult decide(const SearchInput& input) {
  const TaskId* best = nullptr;
  const TaskId* first_that_searches = nullptr;
  bool has_group = false;
  for (const auto& [task, standing] : input.standings) {
    switch (standing.stage) {
      case Stage::kHolds:
        // In a group of an earlier term this task would be refused; in one of the same term that
        // another service has formed it would be counted twice.
        if ((standing.term < input.term_seen ||
             (standing.term == input.term_seen && standing.service != input.service)) &&
            !(input.waits_long && standing.agreed)) {
          continue;
        }
        [[fallthrough]];
      case Stage::kPrepares:
        if (best == nullptr || goes_before(task, standing, *best, input.standings.at(*best))) {
          best = &task;
        }
        break;
      case Stage::kSearches:
        if (first_that_searches == nullptr ||
            rank(task, standing) <
                rank(*first_that_searches, input.standings.at(*first_that_searches))) {
          first_that_searches = &task;
        }
        break;
      case Stage::kObeys:
        // It may take a moment to notice what this task has noticed; or its service goes on.
        has_group = has_group || standing.term_seen >= input.term_seen;
        break;
      case Stage::kEnded:
        break;
    }
  }
  const bool holds = best != nullptr && input.standings.at(*best).stage == Stage::kHolds;
  if (best != nullptr && (holds || input.is_complete)) return {.turn_to = *best};
  const bool is_first = input.is_complete && input.may_prepare && !has_group &&
                        first_that_searches != nullptr && *first_that_searches == input.self;
  return {.turn_to = is_first ? std::optional(input.self) : std::nullopt, .prepare = is_first};
}

}  // namespace cohort::internal::membership
