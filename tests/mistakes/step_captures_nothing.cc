// A local variable that was not captured.
// EXPECT: ‘scale’ is not captured | variable 'scale' cannot be implicitly captured
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  double scale = 0.5;
  scale *= 2;
  strategy.run([](const Tensor& x, const Tensor& y) { return x * scale; }, batch);  // here
}
