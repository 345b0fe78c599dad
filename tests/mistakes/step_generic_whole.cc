// One `auto` is the whole batch.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto doubled = strategy.run([](auto both) { return both[0] * 2; }, batch);
  Tensor sum = strategy.reduce(ReduceOp::SUM, doubled);
}
