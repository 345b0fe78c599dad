// A context before `auto` parameters.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](ReplicaContext& replica, auto x,
                  auto y) { return replica.all_reduce(ReduceOp::SUM, x.sum() + y.sum()); },
               batch);
}
