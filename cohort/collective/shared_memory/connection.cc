#include "cohort/collective/shared_memory/connection.h"

#include "cohort/core/error.h"

namespace cohort::collective::shared_memory {

Connection connect(const GroupMember& member) {
  if (member.size() < 2 || member.size() > kMostTasks) {
    throw InvalidArgumentError(internal::str(
        "a group of ", member.size(), " tasks cannot share memory; 2 to ", kMostTasks, " can"));
  }
  return member.rank == 0 ? receive_tasks(member) : join_tasks(member);
}

}  // namespace cohort::collective::shared_memory
