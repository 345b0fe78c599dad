// How many members a batch has is known when the step runs.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](const Tensor& x, const Tensor& y, const Tensor& weights) { return x; }, batch);
}
