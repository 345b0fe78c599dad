// Two classes of strategies in one conditional.
// EXPECT: operands to ‘?:’ have different types | incompatible operand types
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  bool several = dist.cardinality() > 1;
  auto chosen = several ? strategy : tf::distribute::OneDeviceStrategy("CPU:0");  // here
}
