// Transforms that real processes analyse together, of which one is killed meanwhile.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "cohort/transform/testing_rows.h"
#include "tests/cluster/multi_worker_training.h"

namespace cohort::multi_worker {
namespace {

namespace tft = transform;
using distribute::ParameterServerStrategy;
using distribute::Server;
using distribute::cluster_resolver::TFConfigClusterResolver;
using distribute::coordinator::ClusterCoordinator;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TaskOutcome;

constexpr int64_t kRows = 4000;

// Batches of which, where `holds`, some wait as long as `file` is there.
data::Dataset held_batches(const std::string& file, bool holds) {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  return tft::mixed_batches(kRows).map([=](const Structure& batch) -> Structure {
    if (!holds || ++*calls < 10 || !std::filesystem::exists(file)) return batch;
    std::printf("holds a batch\n");
    std::fflush(stdout);
    const double until = now_ms() + 60'000;
    while (std::filesystem::exists(file) && now_ms() < until) std::this_thread::sleep_for(1ms);
    return batch;
  });
}

// All workers analyse. Arguments: a directory.
std::string analyze_in_step(const Arguments& arguments) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  const auto scope = strategy.scope();
  try {
    const auto output =
        tft::analyze_dataset(held_batches(arguments[0] + "/hold", strategy.worker_id() == 1),
                             tft::exact_analyses, arguments[0] + "/output", {.overwrite = true});
    return std::to_string(output.num_rows());
  } catch (const Error& error) {
    print_end(error);
    throw;
  }
}

// The chief hands out shards. Arguments: a directory.
std::string analyze_shards(const Arguments& arguments) {
  const TFConfigClusterResolver resolver;
  const ParameterServerStrategy strategy(resolver, {.timeout = 20s, .server_options = quick()});
  const bool holds = resolver.task_type() == "worker" && *resolver.task_id() == 1;
  const auto rows =
      strategy.function("rows", [=] { return held_batches(arguments[0] + "/hold", holds); });
  if (resolver.task_type() != "chief") return std::to_string(Server(resolver, quick()).join());
  const ClusterCoordinator coordinator(strategy);
  const auto output = tft::analyze_dataset(coordinator, rows, tft::exact_analyses,
                                           arguments[0] + "/output", {.num_shards = 6});
  return std::to_string(output.num_rows());
}

struct TransformWorkers : MultiWorker {
  std::string expected() const {
    tft::analyze_dataset(tft::mixed_batches(kRows), tft::exact_analyses, directory + "/alone");
    return tft::contents_of(directory + "/alone");
  }
  std::string found() const { return tft::contents_of(directory + "/output"); }
  std::string held_by() const {
    std::ofstream(directory + "/hold").flush();
    return directory + "/hold";
  }
  MultiProcessOptions cluster() const {
    return {.jobs = {{"chief", 1}, {"worker", 2}, {"ps", 1}},
            .function = "analyze_shards",
            .arguments = {directory},
            .deadline = 100s};
  }
};

TEST_F(TransformWorkers, FindTogetherWhatOneProcessFinds) {
  EXPECT_THAT(values_of(workers(3, "analyze_in_step", {directory})),
              ::testing::Each(std::to_string(kRows)));
  EXPECT_EQ(found(), expected());
}

TEST_F(TransformWorkers, AKilledOneIsNamedAndTheDirectoryStays) {
  tft::analyze_dataset(tft::mixed_batches(100), tft::exact_analyses, directory + "/output");
  const std::string before = found();
  held_by();
  MultiProcessRunner runner(workers(2, "analyze_in_step", {directory}));
  runner.start();
  runner.wait_for_line({"worker", 1}, "holds a batch", kPatience);
  const double killed = now_ms();
  runner.kill({"worker", 1});
  const std::string line = runner.wait_for_line({"worker", 0}, "ended at", kPatience);
  EXPECT_THAT(
      line, AllOf(HasSubstr("UNAVAILABLE: "), HasSubstr("/job:worker/task:1"), HasSubstr("lost")));
  EXPECT_LT(detection::time_in(line) - killed, 10'000);
  runner.wait_all();
  EXPECT_EQ(found(), before);
}

TEST_F(TransformWorkers, OfAClusterReadShardsAndAKilledOnesElsewhere) {
  const std::string hold = held_by();
  MultiProcessRunner runner(cluster());
  runner.start();
  runner.wait_for_line({"worker", 1}, "holds a batch", kPatience);
  runner.kill({"worker", 1});
  std::filesystem::remove(hold);
  for (const TaskOutcome& outcome : runner.wait_all()) {
    if (outcome.task == TaskId{"chief", 0}) {
      EXPECT_EQ(outcome.value, std::to_string(kRows)) << outcome.error;
    }
  }
  EXPECT_EQ(found(), expected());
}

}  // namespace
}  // namespace cohort::multi_worker

int main(int argc, char** argv) {
  using namespace cohort::multi_worker;
  return run_main(argc, argv,
                  {{"analyze_in_step", analyze_in_step}, {"analyze_shards", analyze_shards}});
}
