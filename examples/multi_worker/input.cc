#include "input.h"

#include <string>

#include "common/number_files.h"
#include "common/print.h"

namespace multi_worker {

namespace tf = cohort;
using examples::NumberFiles;
using tf::data::AutoShardPolicy;
using tf::data::Dataset;
using tf::distribute::MultiWorkerMirroredStrategy;

namespace {

tf::distribute::DistributedDataset distribute(const MultiWorkerMirroredStrategy& strategy,
                                              const Dataset& dataset, AutoShardPolicy policy) {
  tf::data::Options options;
  options.experimental_distribute.auto_shard_policy = policy;
  return strategy.experimental_distribute_dataset(dataset.with_options(options));
}

void show(const MultiWorkerMirroredStrategy& strategy, const std::string& title,
          const Dataset& dataset, AutoShardPolicy policy) {
  examples::line(
      title + ", 2 workers of 1 replica, batch 4, worker " + std::to_string(strategy.worker_id()),
      examples::steps(distribute(strategy, dataset.batch(4), policy)));
}

}  // namespace

void show_input(const MultiWorkerMirroredStrategy& strategy) {
  if (strategy.num_workers() != 2 || strategy.num_replicas_in_sync() != 2) {
    throw tf::InvalidArgumentError(
        "the input examples are of two workers with one replica each: cohort launch --workers 2 -- "
        "multi_worker --input");
  }
  const NumberFiles two_files({6, 6}), one_file({12});
  show(strategy, "FILE, 2 files of 6", two_files.dataset(), AutoShardPolicy::FILE);
  show(strategy, "DATA, 1 file of 12", one_file.dataset(), AutoShardPolicy::DATA);
  show(strategy, "OFF, 1 file of 12", one_file.dataset(), AutoShardPolicy::OFF);
  show(strategy, "AUTO, range(12)", Dataset::range(12), AutoShardPolicy::AUTO);
  // One file cannot be shared by two workers: an error on both, before the first element is read.
  examples::line("AUTO, 1 file of 12, 2 workers of 1 replica, batch 4", examples::error_of([&] {
                   distribute(strategy, one_file.dataset().batch(4), AutoShardPolicy::AUTO)
                       .iterator()
                       .get_next();
                 }));
}

}  // namespace multi_worker
