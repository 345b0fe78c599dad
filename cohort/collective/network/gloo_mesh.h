// The connections of Gloo between all tasks of a group.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <memory>
#include <string>

#include "cohort/collective/group_member.h"

namespace cohort::collective {

// COLLECTIVE over the tasks; `attempt` keeps what they leave in the store apart from earlier ones.
// Errors: those of Gloo (gloo::Exception, gloo::EnforceNotMet), those of the store.
std::shared_ptr<gloo::Context> connect_gloo_mesh(const GroupMember& member, const std::string& host,
                                                 int attempt, std::chrono::milliseconds timeout);

}  // namespace cohort::collective
