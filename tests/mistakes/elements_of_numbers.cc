// Numbers are elements as they are.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto numbers = Dataset::from_tensors(tf::tuple(1.f, 2, true));
  auto spec = tf::TensorSpec({4}, tf::float32);
  auto rows = tf::TensorSpec({tf::kUnknownDim, 28}, tf::float32, "rows");
  auto names = tf::TensorSpec::strings({});
}
