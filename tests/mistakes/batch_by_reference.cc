// Range-for by reference, constant or not.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  for (auto& both : dist) std::cout << both;
  for (auto&& both : dist) std::cout << both;
  for (const auto& [x, y] : dist) std::cout << x << y;
}
