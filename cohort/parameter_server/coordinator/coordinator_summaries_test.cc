// What a coordinator writes for TensorBoard, on an in-process cluster.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "cohort/data/testing_files.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/train/summary/testing_events.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using std::chrono::seconds;

class CoordinatorSummaries : public data::FilesTest {};

TEST_F(CoordinatorSummaries, ShowWhatTheClusterDoes) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const Variable table(at::zeros({1000}), {.name = "table"});
  const Variable bias(at::zeros({10}), {.name = "bias"});
  const auto writer = summary::create_file_writer(directory);
  const auto read = [&] {
    writer.flush();
    return internal::read_events(internal::posix_file_system(), writer.path());
  };
  const auto values_of = [](const std::vector<internal::ReadEvent>& events, const char* tag) {
    std::vector<std::pair<int64_t, float>> values;
    for (const auto& event : events) {
      if (event.tag == tag) values.emplace_back(event.step, event.numbers<float>().at(0));
    }
    return values;
  };
  int64_t scheduled = 0;
  {
    const ClusterCoordinator coordinator(
        strategy, {.summary_writer = writer, .summary_every = std::chrono::milliseconds(5)});
    const auto deadline = std::chrono::steady_clock::now() + seconds(30);
    do {
      coordinator.schedule([&] { strategy.run([&] { bias.assign_add(at::ones({10})); }); });
      coordinator.join();
      ++scheduled;
    } while (values_of(read(), "ps 0/operations applied").size() < 2 &&
             std::chrono::steady_clock::now() < deadline);
  }
  const auto events = read();
  for (const auto& [step, bytes] : values_of(events, "ps 0/variable bytes")) {
    EXPECT_EQ(bytes, 4040);
  }
  EXPECT_EQ(values_of(events, "ps 0/bytes of table").at(0).second, 4000);
  EXPECT_EQ(values_of(events, "ps 0/bytes of bias").at(0).second, 40);
  EXPECT_GT(values_of(events, "ps 0/bytes received").back().second, 0);
  // The last ones are of the coordinator's end.
  const auto last = std::pair(scheduled, static_cast<float>(scheduled));
  EXPECT_EQ(values_of(events, "coordinator/closures done").back(), last);
  EXPECT_EQ(values_of(events, "coordinator/worker 0 done").back().second +
                values_of(events, "coordinator/worker 1 done").back().second,
            static_cast<float>(scheduled));
  for (const char* tag : {"coordinator/closures queued", "coordinator/closures in flight",
                          "coordinator/closures retried", "coordinator/worker 1 retried"}) {
    EXPECT_EQ(values_of(events, tag).back(), std::pair(scheduled, 0.f)) << tag;
  }
  EXPECT_FALSE(values_of(events, "coordinator/closures/s").empty());
}

}  // namespace
}  // namespace cohort::distribute
