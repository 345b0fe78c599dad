// Another number of members than two.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  for (auto [x, y, weights] : tf::unpack<3>(dist)) std::cout << x << y << weights;
  auto [x, y, weights] = tf::unpack<3>(batch);
  auto it = dist.iterator();
  for (auto [a, b, c] : tf::unpack<3>(it)) std::cout << a << b << c;
}
