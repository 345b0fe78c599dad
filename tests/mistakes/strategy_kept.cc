// Strategies in a container, in an optional, and chosen.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  std::vector<tf::distribute::Strategy> all{strategy, tf::distribute::OneDeviceStrategy("CPU:0")};
  std::optional<MirroredStrategy> maybe;
  if (all.size() > 1) maybe = strategy;
  tf::distribute::Strategy chosen = maybe ? tf::distribute::Strategy(*maybe) : all[1];
}
