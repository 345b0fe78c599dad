// The optional of next(), not tested.
// EXPECT: an argument is the std::optional that next() returns
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto it = dist.iterator();
  strategy.run([](const Tensor& x, const Tensor& y) { return x - y; }, it.next());  // here
}
