// The step was called, instead of handed over.
// EXPECT: this is no function: give the function itself
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto step = [](const Tensor& x) { return x * 2; };
  strategy.run(step(batch.value(0)[0]), batch);  // here
}
