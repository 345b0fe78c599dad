// TensorFlow takes the operation as text, too.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  Tensor sum = strategy.reduce("SUM", batch[0]);
}
