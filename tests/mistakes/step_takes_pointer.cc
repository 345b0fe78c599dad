// libtorch passes pointers here and there.
// EXPECT: a function's parameters are Structure, Tensor
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](const Tensor* x, const Tensor* y) { return *x + *y; }, batch);  // here
}
