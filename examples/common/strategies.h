// Strategies by their names: the only place of a program that knows them.
#pragma once

#include <cohort/cohort.h>

#include <memory>
#include <string>
#include <vector>

namespace examples {

struct MadeStrategy {
  // The servers of a cluster in this process, where it has made one: they end after the strategy.
  std::shared_ptr<void> cluster;
  cohort::distribute::Strategy strategy;
};

std::vector<std::string> strategy_names();
// Errors: those of the strategies.
MadeStrategy make_strategy(const std::string& name);

}  // namespace examples
