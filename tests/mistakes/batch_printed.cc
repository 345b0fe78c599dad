// What next() returns is printed.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto it = dist.iterator();
  std::cout << it.next() << it.get_next_as_optional() << dist.iterator().get_next();
  std::cout << tf::data::Dataset::range(3).iterator().next();
}
