// A scope that nobody holds ends at once.
// EXPECT: WARNS nodiscard | WARNS [-Wunused
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.scope();  // here
}
