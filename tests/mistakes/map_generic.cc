// A map whose parameter is `auto`.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto odd =
      Dataset::range(9).map([](auto x) { return x * 2 + 1; }).filter([](auto x) { return x < 9; });
  auto sums = Dataset::zip({odd, odd}).map([](auto x, auto y) { return x + y; });
  auto twice =
      odd.map([](auto& x) { return std::pair(x, x); }).map([](auto&& both) { return both[0]; });
}
