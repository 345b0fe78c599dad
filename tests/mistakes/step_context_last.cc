// The context comes first.
// EXPECT: a ReplicaContext& or random::Generator& comes first
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](const Tensor& x, ReplicaContext& replica) { return x; }, batch);  // here
}
