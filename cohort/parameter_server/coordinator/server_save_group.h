// A parameter server cluster as a group that saves: its coordinator alone, whose closures pause
// while the values are copied.
#pragma once

#include <memory>

#include "cohort/train/objects/save_group.h"

namespace cohort::internal {

class LeaderSide;

std::shared_ptr<train::SaveGroup> make_server_save_group(const std::weak_ptr<LeaderSide>& leader);

}  // namespace cohort::internal
