// The optional of get_next_as_optional(), for a step that takes the batch.
// EXPECT: an argument is the std::optional that next() returns
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto it = dist.iterator();
  auto step = [](const Structure& both) { return both[0]; };
  strategy.run(step, it.get_next_as_optional());  // here
}
