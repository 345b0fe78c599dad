// Exchanges values between the tasks of a group before they are connected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/group_member.h"

namespace cohort::collective {

// The values that the tasks bring under this name, in the order of ranks. COLLECTIVE.
// Errors: DeadlineExceeded (names the tasks that have not come), those of GroupMember::check and of
// the store.
std::vector<std::string> exchange_values(const GroupMember& member, std::string_view what,
                                         const std::string& mine);

}  // namespace cohort::collective
