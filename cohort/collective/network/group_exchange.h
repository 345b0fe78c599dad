// What the tasks of a group tell each other before they are connected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/group_member.h"
#include "cohort/core/function_ref.h"

namespace cohort::collective {

// The values that the tasks bring under this name, in the order of ranks. COLLECTIVE. `check` is
// called every now and then while it waits; what it throws ends the wait.
// Errors: DeadlineExceeded (names the tasks that have not come), those of the store.
std::vector<std::string> exchange_values(
    const GroupMember& member, std::string_view what, const std::string& mine,
    FunctionRef<void()> check = [] {});

}  // namespace cohort::collective
