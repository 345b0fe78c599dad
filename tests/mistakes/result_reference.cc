// What run returns is a value.
// EXPECT: cannot bind non-const lvalue reference | non-const lvalue reference
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto& losses = strategy.run([](const Tensor& x, const Tensor& y) { return x; }, batch);  // here
}
