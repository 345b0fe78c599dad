// A member function without its object.
// EXPECT: a member function needs its object
#include "given.h"

struct Trainer {
  Tensor step(const Tensor& x, const Tensor& y) { return x + y; }
};

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  strategy.run(&Trainer::step, batch);  // here
}
