#include "cohort/collective/network/group_exchange.h"

#include <algorithm>
#include <optional>

#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

using internal::str;

// Nothing if the task has not come by the deadline.
std::optional<std::string> value_of(const GroupMember& member, std::string_view what, int rank,
                                    FunctionRef<void()> check) {
  constexpr std::chrono::milliseconds kCheckInterval{100};
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    try {
      return member.store->get(member.key(what, rank),
                               std::min(member.deadline, now + kCheckInterval));
    } catch (const DeadlineExceededError&) {
      if (now >= member.deadline) return std::nullopt;
    }
    check();
  }
}

}  // namespace

std::vector<std::string> exchange_values(const GroupMember& member, std::string_view what,
                                         const std::string& mine, FunctionRef<void()> check) {
  member.store->set(member.key(what, member.rank), mine);
  // What this task left for the generation before: all are past it now.
  GroupMember earlier{.group = member.group, .generation = member.generation - 1};
  if (member.generation > 0) member.store->remove(earlier.key(what, member.rank));

  std::vector<std::string> values(member.tasks.size());
  std::string late;
  for (int rank = 0; rank < member.size(); ++rank) {
    if (rank == member.rank) {
      values[static_cast<size_t>(rank)] = mine;
    } else if (auto value = value_of(member, what, rank, check)) {
      values[static_cast<size_t>(rank)] = std::move(*value);
    } else {
      late += str(late.empty() ? "" : ", ", member.task(rank));
    }
  }
  if (late.empty()) return values;
  throw DeadlineExceededError(str(late, " did not come in time to form generation ",
                                  member.generation, " of group '", member.group, "'"));
}

}  // namespace cohort::collective
