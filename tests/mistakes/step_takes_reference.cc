// A parameter that could change the batch.
// EXPECT: is a reference to something that it could change
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](Tensor& x, const Tensor& y) { return x.add_(y); }, batch);  // here
}
