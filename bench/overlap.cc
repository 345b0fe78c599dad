// Whether gradients travel while the backward pass runs: a step over a link on which their exchange
// takes as long as the backward pass, beside the longer of the two and beside a step that exchanges
// only after the backward pass. Two tasks of one replica, each on a core of its own.
//
//   bench_overlap [BYTES_PER_PACK]   tasks of one process, over a simulated link
//   bench_overlap gloo|calls         processes, each on a host (network namespace) of its own, over a
//                                    link of limited rate; takes root
#include <barrier>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <thread>

#include "cohort/collective/in_process_communicator.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/strategies/local_strategy.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/testing/multi_process_main.h"
#include "overlap_hosts.h"
#include "overlap_task.h"
#include "simulated_link.h"

namespace {

using bench::OverlapTimes;
using cohort::distribute::Strategy;

int measure_in_one_process(int64_t bytes_per_pack) {
  double bytes_per_second = 0;
  OverlapTimes times;
  std::barrier<> all(bench::kOverlapTasks);
  const auto members = cohort::collective::make_in_process_communicators(bench::kOverlapTasks);
  std::vector<std::thread> tasks;
  for (int rank = 0; rank < bench::kOverlapTasks; ++rank) {
    tasks.emplace_back([&, rank] {
      bench::stay_on_core(rank);
      const Strategy strategy(
          std::make_shared<cohort::internal::LocalStrategy>(cohort::internal::LocalStrategy::Config{
              .name = "bench",
              .devices = {cohort::canonicalize("CPU:0")},
              .communicator = std::make_shared<bench::SimulatedLink>(
                  members[static_cast<size_t>(rank)], bytes_per_second),
              .communication_options = {.bytes_per_pack = bytes_per_pack}}));
      bench::OverlapTask task(strategy, [&] { all.arrive_and_wait(); });
      OverlapTimes mine;
      mine.compute = task.step(true);
      mine.backward = task.backward();
      all.arrive_and_wait();
      if (rank == 0) bytes_per_second = bench::kOverlapBytes / (mine.backward / 1e3);
      all.arrive_and_wait();
      mine.exchange = task.exchange();
      mine.overlapped = task.step(true);
      mine.afterwards = task.step(false);
      if (rank == 0) times = mine;
    });
  }
  for (std::thread& task : tasks) task.join();
  return bench::report(times, bytes_per_second, "a simulated link");
}

int run(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "";
  if (how != "gloo" && how != "calls") return measure_in_one_process(std::atoll(how.data()));
  try {
    return bench::measure_overlap_between_hosts(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "bench_overlap: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  cohort::logging::set_level(cohort::logging::Level::kWarning);
  return cohort::testing::multi_process_main(
      argc, argv, {{"overlap_on_a_host", bench::overlap_on_a_host}}, run);
}
