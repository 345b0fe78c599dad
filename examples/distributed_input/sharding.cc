// Two input workers of one replica each: what each reads is up to the dataset's AutoShardPolicy.
#include "common/number_files.h"
#include "common/print.h"
#include "sections.h"

namespace distributed_input {

using namespace examples;

namespace tf = cohort;
using tf::data::AutoShardPolicy;
using tf::data::Dataset;

namespace {

tf::distribute::DistributedDataset for_two_workers(const Dataset& dataset, AutoShardPolicy policy,
                                                   const tf::distribute::Strategy& strategy) {
  tf::data::Options options;
  options.experimental_distribute.auto_shard_policy = policy;
  const tf::distribute::InputWorkers workers{
      {.input_device = "CPU:0", .compute_devices = {"CPU:0"}},
      {.input_device = "CPU:1", .compute_devices = {"CPU:1"}}};
  return tf::distribute::get_distributed_dataset(dataset.with_options(options), workers, strategy);
}

void print_both(const std::string& title, const Dataset& dataset, AutoShardPolicy policy) {
  const auto strategy = replicas(2);
  const auto dist_dataset = for_two_workers(dataset, policy, strategy);
  Steps of_worker[2];
  for (const auto& batch : dist_dataset) {
    for (size_t worker = 0; worker < 2; ++worker) {
      of_worker[worker].add(brackets(batch.value(worker)));
    }
  }
  for (int worker = 0; worker < 2; ++worker) {
    line(title + ", 2 workers of 1 replica, batch 4, worker " + std::to_string(worker),
         of_worker[worker].text());
  }
}

}  // namespace

void shard_between_workers() {
  const NumberFiles two_files({6, 6}), one_file({12});
  // FILE: each worker reads its own files.
  print_both("FILE, 2 files of 6", two_files.dataset().batch(4), AutoShardPolicy::FILE);
  // DATA: each worker reads everything and keeps every second piece.
  print_both("DATA, 1 file of 12", one_file.dataset().batch(4), AutoShardPolicy::DATA);
  // OFF: each worker sees everything.
  print_both("OFF, 1 file of 12", one_file.dataset().batch(4), AutoShardPolicy::OFF);
  // AUTO: FILE where there are files, else DATA.
  print_both("AUTO, range(12)", Dataset::range(12).batch(4), AutoShardPolicy::AUTO);
  // One file cannot be shared by two workers.
  const auto strategy = replicas(2);
  line("AUTO, 1 file of 12, 2 workers of 1 replica, batch 4", error_of([&] {
         for_two_workers(one_file.dataset().batch(4), AutoShardPolicy::AUTO, strategy)
             .iterator()
             .get_next();
       }));
}

}  // namespace distributed_input
