// For tests: the strategies of one process, which differ in how they store ON_WRITE variables.
// Programs see no difference in values.
#pragma once

#include <string>
#include <vector>

#include "cohort/distribute/strategies/central_storage_strategy.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {

enum class Storage {
  kShared,      // MirroredStrategy; one storage, which all replicas share
  kPerReplica,  // MirroredStrategy; one for each
  kCentral,     // CentralStorageStrategy
};
inline constexpr Storage kStorages[] = {Storage::kShared, Storage::kPerReplica, Storage::kCentral};

inline std::string storage_name(Storage storage) {
  if (storage == Storage::kCentral) return "Central";
  return storage == Storage::kShared ? "Shared" : "PerReplica";
}

// On `count` logical CPUs of its own configuration.
inline Strategy with_storage(Storage storage, int count) {
  const MirroredStrategy strategy =
      mirrored(count, {.shared_storage = storage == Storage::kShared});
  if (storage != Storage::kCentral) return strategy;
  return CentralStorageStrategy(strategy.extended().worker_devices());
}

}  // namespace cohort::distribute
