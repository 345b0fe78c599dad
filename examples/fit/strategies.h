// Strategies by their names: the only place of the program that knows them.
#pragma once

#include <cohort/cohort.h>

#include <string>
#include <vector>

namespace fit {

std::vector<std::string> strategy_names();
// Errors: those of the strategies.
cohort::distribute::Strategy make_strategy(const std::string& name);

}  // namespace fit
