// A context by value.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](ReplicaContext replica, const Tensor& x, const Tensor& y) { return x; }, batch);
}
