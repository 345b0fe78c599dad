// The target comes first.
// EXPECT: no matching function | no matching member function
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  tf::Variable weight(at::ones({}));
  tf::GradientTape tape;
  Tensor loss = weight.value() * 2;
  tape.gradient({weight}, loss, {});  // here
}
