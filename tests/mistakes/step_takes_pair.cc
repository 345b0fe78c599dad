// A batch of two members as a pair, or as a struct.
// EXPECT: compiles
#include "given.h"

struct Example {
  Tensor image;
  Tensor label;
};

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run([](const std::pair<Tensor, Tensor>& both) { return both.first; }, batch);
  strategy.run([](const Example& example) { return example.label; }, batch);
}
