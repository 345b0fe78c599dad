// The type of the datasets, in angle brackets.
// EXPECT: compiles
#include "given.h"

void program(const MirroredStrategy& strategy, DistributedDataset& dist,
             const PerReplica<Structure>& batch) {
  auto files = Dataset::list_files("*.tfrecord");
  auto records = files.interleave<tf::data::TFRecordDataset>({.cycle_length = 4});
  auto same = files.interleave([](auto file) { return tf::data::TFRecordDataset(file); });
  auto lines = files.flat_map<tf::data::TextLineDataset>();
}
