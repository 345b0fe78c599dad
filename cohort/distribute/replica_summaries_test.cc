#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>

#include "cohort/data/testing_files.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/strategies/strategy_extended.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/train/summary/recording.h"
#include "cohort/train/summary/summary.h"
#include "cohort/train/summary/testing_events.h"

namespace cohort::distribute {
namespace {

using testing::ElementsAre;

struct ReplicaSummaries : data::FilesTest {
  std::vector<internal::ReadEvent> events(const summary::SummaryWriter& writer) const {
    writer.flush();
    return internal::read_events(internal::posix_file_system(), writer.path());
  }
};

TEST_F(ReplicaSummaries, OnlyTheFirstReplicaRecords) {
  const MirroredStrategy strategy = mirrored(3);
  const auto writer = summary::create_file_writer(path("logs"));
  auto scope = writer.as_default(5);
  const auto recorded = strategy.run([](ReplicaContext& context) {
    const int replica = context.replica_id_in_sync_group();
    EXPECT_EQ(summary::should_record_summaries(), replica == 0);
    return at::scalar_tensor(summary::scalar("replica", replica), boolean);
  });
  EXPECT_TRUE(recorded.value(0).item<bool>());
  EXPECT_FALSE(recorded.value(1).item<bool>());
  EXPECT_FALSE(recorded.value(2).item<bool>());
  EXPECT_TRUE(summary::scalar("after", 1));
  const auto found = events(writer);
  EXPECT_THAT(internal::tags_of(found), ElementsAre("replica", "after"));
  EXPECT_EQ(found[0].step, 5);
  EXPECT_THAT(found[0].numbers<float>(), ElementsAre(0));
}

TEST_F(ReplicaSummaries, MergedFunctionsRecordOnce) {
  const MirroredStrategy strategy = mirrored(2);
  const auto writer = summary::create_file_writer(path("logs"));
  auto scope = writer.as_default(0);
  for (int step = 0; step < 20; ++step) {  // whichever thread comes last
    strategy.run([](ReplicaContext& context) {
      context.merge_call([](Strategy&) { EXPECT_TRUE(summary::scalar("merged", 1)); });
    });
  }
  EXPECT_EQ(events(writer).size(), 20U);
}

TEST_F(ReplicaSummaries, AConditionOfTheCallerHoldsInTheStep) {
  const MirroredStrategy strategy = mirrored(2);
  const auto writer = summary::create_file_writer(path("logs"));
  auto scope = writer.as_default(0);
  auto condition = summary::record_if(false);
  strategy.run([] { EXPECT_FALSE(summary::scalar("x", 1)); });
}

TEST_F(ReplicaSummaries, AStrategyKeepsNoWriterAfterTheStep) {
  const MirroredStrategy strategy = mirrored(2);
  std::weak_ptr<const internal::RecordingState> callers;
  {
    auto scope = summary::create_file_writer(path("logs")).as_default(0);
    callers = internal::recording_state();
    strategy.run([] { summary::scalar("x", 1); });
  }
  EXPECT_TRUE(callers.expired());
}

TEST_F(ReplicaSummaries, OfSeveralTasksTheFirstRecords) {
  std::vector<summary::SummaryWriter> writers;
  for (int task = 0; task < 2; ++task) {
    writers.push_back(summary::create_file_writer(path(internal::str("logs", task))));
  }
  run_all_tasks(2, 2, [&](const Strategy& strategy, int task) {
    EXPECT_EQ(strategy.extended().should_save_summary(), task == 0);
    EXPECT_EQ(strategy.extended().should_checkpoint(), task == 0);
    EXPECT_TRUE(strategy.extended().experimental_between_graph());
    auto scope = writers[static_cast<size_t>(task)].as_default(task);
    strategy.run([](ReplicaContext& context) {
      summary::scalar("x", 1);
      context.merge_call([](Strategy&) { summary::scalar("merged", 1); });
    });
  });
  EXPECT_THAT(internal::tags_of(events(writers[0])), ElementsAre("x", "merged"));
  EXPECT_TRUE(events(writers[1]).empty());
}

TEST(StrategyExtended, OfOneProcessEverythingIsSavedHere) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_TRUE(strategy.extended().should_save_summary());
  EXPECT_TRUE(strategy.extended().should_checkpoint());
  EXPECT_FALSE(strategy.extended().experimental_between_graph());
  EXPECT_FALSE(strategy.extended().experimental_require_static_shapes());
}

}  // namespace
}  // namespace cohort::distribute
