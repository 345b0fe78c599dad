// MultiWorkerMirroredStrategy in real processes trains to equal bits.
#include <gmock/gmock.h>

#include "tests/cluster/multi_worker_training.h"

namespace cohort::multi_worker {
namespace {

using distribute::MultiWorkerMirroredStrategyOptions;
using ::testing::HasSubstr;

// Arguments: replicas of each task, dropout.
std::string train_in_step(const Arguments& arguments) {
  random::set_seed(8);
  config::set_logical_device_configuration("CPU", std::stoi(arguments.at(0)));
  Training training(make_strategy(), {.dropout = std::stod(arguments.at(1))});
  training.run_to(kSteps);
  return training.result();
}

std::string train_mirrored(const Arguments& arguments) {
  random::set_seed(8);
  config::set_logical_device_configuration("CPU", std::stoi(arguments.at(0)));
  Training training(distribute::MirroredStrategy(), {.dropout = std::stod(arguments.at(1))});
  training.run_to(kSteps);
  return training.result();
}

// How many keys of groups are left in the store.
std::string count_keys(const Arguments&) {
  std::string counts;
  for (int i = 0; i < 2; ++i) {
    const MultiWorkerMirroredStrategy strategy = make_strategy();
    strategy.reduce(ReduceOp::SUM, at::full({}, 1.0));
    counts += std::to_string(strategy.coordination().list("collective/").size());
  }
  return counts;
}

// Waits as long as it takes, wherever it waits for others.
std::string sum_for_ever(const Arguments&) {
  constexpr auto kForEver = std::chrono::milliseconds::max();
  distribute::ServerOptions server = quick();
  server.start_timeout = kForEver;
  const MultiWorkerMirroredStrategy strategy({.communication_options = {.timeout = kForEver},
                                              .server_options = server,
                                              .close_timeout = kForEver});
  const auto sums = strategy.run(
      [](ReplicaContext& context) { return context.all_reduce(ReduceOp::SUM, at::full({}, 1.0)); });
  return std::to_string(sums.value(0).item<int64_t>());
}

std::vector<double> losses_of(const std::string& result) {
  std::istringstream text(result.substr(16));
  std::vector<double> losses;
  for (double loss = 0; text >> loss;) losses.push_back(loss);
  return losses;
}

void expect_curve_near(const std::string& result, const std::string& expected) {
  const auto losses = losses_of(result), other = losses_of(expected);
  ASSERT_EQ(losses.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(other.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], other[i], 1e-3) << i;
}

TEST_F(MultiWorker, TwoWorkersTrainToTheBitsOfTwoReplicas) {
  const std::string mirrored = values_of(workers(1, "train_mirrored", {"2", "0.2"}))[0];
  const auto first = values_of(workers(2, "train", {"1", "0.2"}));
  const auto second = values_of(workers(2, "train", {"1", "0.2"}));
  EXPECT_EQ(first[0], first[1]);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first[0], mirrored);
  EXPECT_LT(losses_of(mirrored).back(), losses_of(mirrored).front());
}

TEST_F(MultiWorker, FourReplicasTrainAlikeHoweverTheyAreDivided) {
  const std::string mirrored = values_of(workers(1, "train_mirrored", {"4", "0"}))[0];
  for (const int tasks : {2, 4}) {
    const auto values = values_of(workers(tasks, "train", {std::to_string(4 / tasks), "0"}));
    for (const std::string& value : values) EXPECT_EQ(value, values[0]) << tasks;
    expect_curve_near(values[0], mirrored);
  }
}

TEST_F(MultiWorker, AWorkerThatIsAloneIsAMirroredStrategy) {
  EXPECT_EQ(values_of(workers(1, "train", {"2", "0.2"})),
            values_of(workers(1, "train_mirrored", {"2", "0.2"})));
}

TEST_F(MultiWorker, AGroupThatStandsLeavesNothingInTheStore) {
  for (const std::string& counts : values_of(workers(2, "count_keys"))) EXPECT_EQ(counts, "00");
}

TEST_F(MultiWorker, TimeoutsMayBeAsLongAsTheyGo) {
  for (const std::string& sum : values_of(workers(2, "sum_for_ever"))) EXPECT_EQ(sum, "2");
}

// ---- What is refused before a socket is opened.

template <class E>
std::string error_of(const MultiWorkerMirroredStrategyOptions& options) {
  try {
    const MultiWorkerMirroredStrategy strategy(options);
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another class: ") + error.what();
  }
  return "no error";
}

MultiWorkerMirroredStrategyOptions cluster(const train::ClusterSpec& spec,
                                           std::optional<std::string> type, std::optional<int> id) {
  namespace resolvers = distribute::cluster_resolver;
  return {.cluster_resolver = std::make_shared<resolvers::SimpleClusterResolver>(
              spec, resolvers::SimpleClusterResolverOptions{.task_type = std::move(type),
                                                            .task_id = id})};
}

TEST(MultiWorkerErrors, AClusterThatCannotRunIsOneLine) {
  const train::ClusterSpec two({{"worker", {"127.0.0.1:2222", "127.0.0.1:2223"}}});
  EXPECT_THAT(error_of<InvalidArgumentError>(cluster(two, {}, {})),
              HasSubstr("task: is missing: which task of the cluster is this?"));
  EXPECT_THAT(error_of<InvalidArgumentError>(cluster(two, "worker", {})),
              HasSubstr("task.index: is missing"));
  EXPECT_THAT(error_of<InvalidArgumentError>(cluster(two, {}, 1)),
              HasSubstr("task.type: is missing"));
  EXPECT_THAT(error_of<InvalidArgumentError>(cluster(two, "worker", 2)),
              HasSubstr("task.index: is 2; job 'worker' has 2 tasks"));
  EXPECT_THAT(error_of<InvalidArgumentError>(cluster(two, "trainer", 0)),
              HasSubstr("is no known job"));
  const train::ClusterSpec with_ps({{"ps", {"127.0.0.1:2221"}}, {"worker", {"127.0.0.1:2222"}}});
  EXPECT_THAT(error_of<InvalidArgumentError>(cluster(with_ps, "ps", 0)),
              HasSubstr("a ps does not train"));
  MultiWorkerMirroredStrategyOptions negative;
  negative.communication_options.bytes_per_pack = -1;
  EXPECT_THAT(error_of<InvalidArgumentError>(negative), HasSubstr("bytes_per_pack"));
}

TEST(MultiWorkerErrors, AnEvaluatorAndAProgramWithoutAClusterAreAlone) {
  const MultiWorkerMirroredStrategy alone(cluster({}, {}, {}));
  EXPECT_EQ(alone.num_workers(), 1);
  EXPECT_EQ(alone.num_replicas_in_sync(), 1);
  EXPECT_TRUE(alone.is_chief());
  EXPECT_THROW(alone.coordination(), FailedPreconditionError);
  EXPECT_NE(alone.cluster_resolver(), nullptr);
  EXPECT_EQ(distribute::OneDeviceStrategy("CPU:0").cluster_resolver(), nullptr);
  const distribute::experimental::MultiWorkerMirroredStrategy evaluator(cluster(
      train::ClusterSpec({{"worker", {"127.0.0.1:2222", "127.0.0.1:2223"}}}), "evaluator", 0));
  EXPECT_EQ(evaluator.num_workers(), 1);
  EXPECT_TRUE(evaluator.extended().should_checkpoint());
}

}  // namespace
}  // namespace cohort::multi_worker

int main(int argc, char** argv) {
  using namespace cohort::multi_worker;
  return run_main(argc, argv,
                  {{"train", train_in_step},
                   {"train_mirrored", train_mirrored},
                   {"count_keys", count_keys},
                   {"sum_for_ever", sum_for_ever}});
}
