// A mistake in the body of a generic step.
// EXPECT: has no member named ‘add_to’ | no member named 'add_to'
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](auto x, auto y) { return x.add_to(y); }, batch);  // here
}
