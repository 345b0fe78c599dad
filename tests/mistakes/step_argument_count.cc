// As many arguments as the step takes, no more.
// EXPECT: takes another number of arguments than it is given
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](const Tensor& x) { return x; }, batch[0], batch[1]);  // here
}
