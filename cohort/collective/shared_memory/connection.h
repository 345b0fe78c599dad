// How the tasks of a group come to share memory. Task 0 listens on an abstract unix socket, whose
// name it leaves in the group's store beside a secret; the others connect, prove that they know the
// secret, and get the memory's descriptor. The sockets are closed again at the end.
#pragma once

#include "cohort/collective/group_member.h"
#include "cohort/collective/shared_memory/layout.h"
#include "cohort/collective/shared_memory/lifelines.h"
#include "cohort/collective/shared_memory/shared_file.h"

namespace cohort::collective::shared_memory {

struct Connection {
  Layout layout;
  SharedFile file;
  Mapping common;  // what all map from the beginning
  Lifelines lifelines;
};

// COLLECTIVE over the tasks. Errors: those of make_shared_memory_communicator.
Connection connect(const GroupMember& member);

// The first message of a task.
struct Hello {
  static constexpr size_t kSecretDigits = 64;
  char secret[kSecretDigits] = {};
  int64_t generation = 0;
  int64_t rank = 0;
};

// The messages of task 0: one when it sends the memory, and one when all have mapped it.
struct Answer {
  Layout layout = {};
  int64_t error_bytes = 0;  // more than 0: of why there is no group, which follow
};

// Task 0's part, and that of the others.
Connection receive_tasks(const GroupMember& member);
Connection join_tasks(const GroupMember& member);

}  // namespace cohort::collective::shared_memory
