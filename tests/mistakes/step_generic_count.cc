// Two `auto` parameters for one argument.
// EXPECT: one `auto` is the whole batch or element
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](auto x, auto y) { return x; }, batch[0]);  // here
}
