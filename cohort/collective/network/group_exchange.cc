#include "cohort/collective/network/group_exchange.h"

#include <utility>

#include "cohort/collective/forming_wait.h"
#include "cohort/core/error.h"

namespace cohort::collective {

using internal::str;

std::vector<std::string> exchange_values(const GroupMember& member, std::string_view what,
                                         const std::string& mine) {
  member.store->set(member.key(what, member.rank), mine);
  FormingWait wait(member);
  std::vector<std::string> values(member.tasks.size());
  std::string late;
  for (int rank = 0; rank < member.size(); ++rank) {
    if (rank == member.rank) {
      values[static_cast<size_t>(rank)] = mine;
    } else if (auto value = wait.value(member.key(what, rank))) {
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
