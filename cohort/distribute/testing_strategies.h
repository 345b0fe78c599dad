// For tests: one program under every strategy of this folder.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_storage.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/distribute/testing_topology.h"

namespace cohort::distribute {

using StrategyProgram = std::function<void(const Strategy&)>;

// Of one process; the last ones have two replicas.
inline void under_local_strategies(const StrategyProgram& program) {
  {
    SCOPED_TRACE("one device");
    const LogicalCpus cpus(1);
    program(OneDeviceStrategy("CPU:0"));
  }
  for (const int replicas : {1, 2}) {
    for (const Storage storage : kStorages) {
      SCOPED_TRACE(storage_name(storage) + " of " + std::to_string(replicas));
      program(with_storage(storage, replicas));
    }
  }
}

// Also of several tasks, in each of which the program runs.
inline void under_every_strategy(const StrategyProgram& program) {
  under_local_strategies(program);
  for (const Topology topology : {Topology{2, 1}, Topology{2, 2}}) {
    run_all_tasks(topology.tasks, topology.replicas_each,
                  [&](const Strategy& strategy, int) { program(strategy); });
  }
}

}  // namespace cohort::distribute
