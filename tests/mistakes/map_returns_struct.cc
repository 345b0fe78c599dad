// Elements as structs.
// EXPECT: compiles
#include "given.h"

struct Example {
  Tensor image;
  double weight = 0;
};

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto pairs = Dataset::range(3).map([](int64_t x) { return Example{tf::Structure(x), 2.5}; });
  auto sums = pairs.map([](const Example& example) { return example.image + example.weight; });
}
