// A map is no step: it runs on no replica.
// EXPECT: a function's parameters are Structure, Tensor
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Dataset::range(3).map([](ReplicaContext& replica, int64_t x) { return x; });  // here
}
