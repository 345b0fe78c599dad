// A step whose parameters are all `auto`: the members of the batch.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto products =
      strategy.run([](auto features, auto labels) { return features.mul(labels); }, batch);
  Tensor sum = strategy.reduce(ReduceOp::SUM, products);
}
