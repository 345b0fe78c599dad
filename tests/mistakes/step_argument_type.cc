// A number where the step takes text.
// EXPECT: does not convert to the type of the function's parameter
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](const std::string& name) { return name.size(); }, batch[0]);  // here
}
