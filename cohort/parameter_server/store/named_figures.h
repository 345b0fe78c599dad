// Numbers of a task, by names that people read.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cohort::internal {

using NamedFigures = std::vector<std::pair<std::string, double>>;

}  // namespace cohort::internal
