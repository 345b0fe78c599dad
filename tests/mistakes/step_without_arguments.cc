// The batch was forgotten.
// EXPECT: takes another number of arguments than it is given
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](const Tensor& x, const Tensor& y) { return x + y; });  // here
}
