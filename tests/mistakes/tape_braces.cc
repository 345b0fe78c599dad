// Variables and tensors in braces, as the guides have them in brackets.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  tf::Variable weight(at::ones({}));
  tf::GradientTape tape;
  Tensor loss = weight.value() * 2;
  std::vector<Tensor> gradients = tape.gradient(loss, {weight});
  Tensor gradient = tape.gradient(loss, weight);
}
