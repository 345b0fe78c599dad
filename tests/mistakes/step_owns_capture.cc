// A capture that cannot be copied.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto names = std::make_unique<std::string>("loss");
  strategy.run(
      [names = std::move(names)](const Tensor& x, const Tensor& y) {
        return x.numel() + static_cast<int64_t>(names->size());
      },
      batch);
}
