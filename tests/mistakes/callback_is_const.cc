// A callback counts and remembers.
// EXPECT: declare it without const
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  const tf::keras::callbacks::EarlyStopping stop({.patience = 2});
  const std::vector<tf::keras::callbacks::CallbackArgument> list = {stop};  // here
}
