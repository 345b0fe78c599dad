// A communicator between tasks that are processes of one host. They map the same memory: each adds
// one slice of all tasks' values directly from where they lie, and a call is a few atomic
// operations and, where somebody must wait for long, a futex.
//
//   if (all host identities are one) communicator = make_shared_memory_communicator(member);
#pragma once

#include <memory>

#include "cohort/collective/communicator.h"
#include "cohort/collective/group_member.h"

namespace cohort::collective {

// COLLECTIVE over the tasks of `member`, of which there are 2 to 250. Values are copied unless they
// lie in memory of Communicator::buffer, on all tasks.
// A task whose process ends, or that destroys its communicator, is lost to the others within some
// 10 ms, where they wait for it. A child of fork must not use the communicator; while it lives, the
// end of its parent is noticed by the deadline only.
// Errors: DeadlineExceeded (names the tasks that have not come), Unavailable (a task was lost),
// ResourceExhausted (no memory, no file descriptor), InvalidArgument (the number of tasks),
// PermissionDenied (another user's process in place of task 0), those of the store.
std::shared_ptr<Communicator> make_shared_memory_communicator(const GroupMember& member);

}  // namespace cohort::collective
