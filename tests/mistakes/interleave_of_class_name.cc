// A class is no argument, as it is in Python.
// EXPECT: expected primary-expression | expected '(' for function-style cast
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto files = Dataset::list_files("*.tfrecord");
  files.interleave(tf::data::TFRecordDataset, {.cycle_length = 4});  // here
}
