// Bytes between the tasks of a group over Gloo: faster than calls, and neither encrypted nor
// authenticated. For loopback, and for networks that are declared trusted.
#pragma once

#include <memory>
#include <string>

#include "cohort/collective/group_member.h"
#include "cohort/collective/network/transport.h"

namespace cohort::collective {

// False where libtorch brings a Gloo of its own: two of them in one process would clash.
bool gloo_is_built();

// COLLECTIVE over the tasks of `member`. Listens, while the group forms, at a free port of the
// address `host` of this task. `control` connects the same tasks: by it they learn of lost tasks,
// and why a group ends.
// A stranger that connects while the group forms spoils that attempt; the tasks try again, three
// times in all.
// Errors: Unavailable (no attempt succeeded, a task was lost), DeadlineExceeded, those of the
// store, FailedPrecondition (gloo_is_built is false).
std::unique_ptr<Transport> make_gloo_transport(const GroupMember& member, const std::string& host,
                                               std::unique_ptr<Transport> control);

}  // namespace cohort::collective
