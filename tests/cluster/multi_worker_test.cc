// MultiWorkerMirroredStrategy in real processes: equal bits, faults, restarts.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <cohort/cohort.h>
#include <cohort/testing/multi_process_main.h>
#include <cohort/testing/multi_process_runner.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include "cohort/cluster/launch/free_ports.h"
#include "cohort/cluster/launch/launcher.h"

namespace cohort {
namespace {

namespace layers = keras::layers;
using distribute::InputContext;
using distribute::MultiWorkerMirroredStrategy;
using distribute::MultiWorkerMirroredStrategyOptions;
using distribute::PerReplica;
using distribute::ReduceOp;
using distribute::ReplicaContext;
using distribute::Strategy;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Lt;
using testing::MultiProcessOptions;
using testing::MultiProcessRunner;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TaskOutcome;
using namespace std::chrono_literals;
using Arguments = std::vector<std::string>;

constexpr auto kPatience = 40s;

// On the clock that all processes share.
double now_ms() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// The settings named Test in docs/faults.md.
distribute::ServerOptions quick() {
  return {.keepalive_time = 1s,
          .keepalive_timeout = 1s,
          .start_timeout = kPatience,
          .heartbeat_interval = 500ms,
          .heartbeat_timeout = 2s};
}

MultiWorkerMirroredStrategy make_strategy() {
  return MultiWorkerMirroredStrategy({.server_options = quick()});
}

// ---- A training.

constexpr int64_t kBatch = 8;

data::Dataset samples() {
  const auto generator = random::RandomGenerator::from_seed(4);
  const Tensor inputs = generator.normal({50, 6});
  const Tensor labels = at::remainder(inputs.sum({1}).mul(3).floor(), 3).to(int64);
  data::Options options;
  options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
  return data::Dataset::from_tensor_slices(tuple(inputs, labels))
      .shuffle(50, {.seed = 2})
      .batch(kBatch, {.drop_remainder = true})
      .repeat()
      .with_options(options);
}

// A hash of the bytes of all values.
std::string digest(const std::vector<distribute::Variable>& variables) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const distribute::Variable& variable : variables) {
    const Tensor value = variable.value().detach().contiguous();
    const auto* bytes = static_cast<const unsigned char*>(value.data_ptr());
    for (size_t i = 0; i < value.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

class Training {
 public:
  struct Options {
    std::string directory = "";  // of checkpoints; empty: none
    double dropout = 0.2;
  };
  explicit Training(const Strategy& strategy) : Training(strategy, Options{}) {}
  Training(const Strategy& strategy, const Options& options)
      : Training(strategy, options, strategy.scope()) {}

  // From wherever the latest checkpoint is. Before each step, `before` is told its number.
  void run_to(
      int steps, const std::function<void(int)>& before = [](int) {}) {
    for (auto i = optimizer_.iterations().value().item<int64_t>(); i < steps; ++i) {
      before(static_cast<int>(i));
      const PerReplica<Tensor> mine = strategy_.run(
          [this](const Tensor& inputs, const Tensor& labels) { return step(inputs, labels); },
          input_.get_next());
      losses_.push_back(strategy_.reduce(ReduceOp::SUM, mine).item<double>());
      if (checkpoints_ && i % 5 == 4) checkpoints_->save();
    }
  }

  // "digest loss loss ...".
  std::string result() const {
    std::ostringstream text;
    text.precision(9);
    std::vector<distribute::Variable> all = model_.variables();
    for (const auto& variable : optimizer_.variables()) all.push_back(variable);
    text << digest(all);
    for (const double loss : losses_) text << ' ' << loss;
    return text.str();
  }

 private:
  Training(const Strategy& strategy, const Options& options, const distribute::Scope&)
      : strategy_(strategy),
        model_({layers::Dense(16, {.activation = "relu"}), layers::Dropout(options.dropout),
                layers::Dense(3)}),
        optimizer_({.learning_rate = 0.01}),
        input_(strategy.experimental_distribute_dataset(samples()).iterator()) {
    if (options.directory.empty()) return;
    checkpoints_.emplace(train::Checkpoint({{"model", model_},
                                            {"optimizer", optimizer_},
                                            {"input", input_},
                                            {"random", strategy_}}),
                         options.directory, train::CheckpointManagerOptions{.max_to_keep = 2});
    checkpoints_->restore_or_initialize();
  }

  Tensor step(const Tensor& inputs, const Tensor& labels) const {
    GradientTape tape;
    const Tensor logits = model_(inputs, {.training = true});
    const Tensor loss =
        nn::compute_average_loss(loss_(labels, logits), {.global_batch_size = kBatch});
    const auto variables = model_.trainable_variables();
    optimizer_.apply_gradients(zip(tape.gradient(loss, variables), variables));
    return loss;
  }

  const Strategy strategy_;
  const keras::Sequential model_;
  const keras::optimizers::Adam optimizer_;
  const keras::losses::SparseCategoricalCrossentropy loss_{
      {.from_logits = true, .reduction = keras::losses::Reduction::NONE}};
  distribute::DistributedIterator input_;
  std::optional<train::CheckpointManager> checkpoints_;
  std::vector<double> losses_;
};

// ---- What the tasks run.

constexpr int kSteps = 25;

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

// Steps without end; says when and why they ended.
std::string step_for_ever(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  std::printf("started\n");
  try {
    while (true) {
      strategy.run([](ReplicaContext& context) {
        return context.all_reduce(ReduceOp::SUM, at::full({1000}, 1.0));
      });
    }
  } catch (const Error& error) {
    std::printf("ended at %.1f: %s: %s\n", now_ms(), std::string(code_name(error.code())).c_str(),
                error.what());
    throw;
  }
}

// Worker 1 throws in its third step.
std::string throw_on_one(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  for (int i = 0; i < 10; ++i) {
    strategy.run([&](ReplicaContext& context) {
      if (i == 2 && strategy.worker_id() == 1) throw DataLossError("record 7 is damaged");
      return context.all_reduce(ReduceOp::SUM, at::full({3}, 1.0));
    });
  }
  return "done";
}

// Worker 1 ends its program after the third step, worker 0 after the tenth.
std::string end_early(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  for (int i = 0; i < (strategy.worker_id() == 1 ? 3 : 10); ++i) {
    strategy.run([&](ReplicaContext& context) {
      return context.all_reduce(ReduceOp::SUM, at::full({3}, 1.0));
    });
  }
  return "done";
}

// Worker 1 knows a third worker.
std::string disagree(const Arguments&) {
  namespace resolvers = distribute::cluster_resolver;
  const resolvers::TFConfigClusterResolver told;
  train::ClusterSpec::Jobs jobs = told.cluster_spec().as_dict();
  if (*told.task_id() == 1) jobs["worker"][2] = "127.0.0.1:1";
  distribute::ServerOptions options = quick();
  options.start_timeout = 3s;
  const MultiWorkerMirroredStrategy strategy(
      {.cluster_resolver = std::make_shared<resolvers::SimpleClusterResolver>(
           train::ClusterSpec(jobs),
           resolvers::SimpleClusterResolverOptions{.task_type = told.task_type(),
                                                   .task_id = told.task_id()}),
       .server_options = options});
  return "";
}

// Goes on after the loss of a worker without a restart of its own: the group forms again.
// Arguments: the directory of checkpoints; whether worker 1 is to be lost.
std::string survive(const Arguments& arguments) {
  for (int attempt = 0;; ++attempt) {
    try {
      random::set_seed(8);
      keras::backend::clear_session();  // layers are named as in a process that begins
      const MultiWorkerMirroredStrategy strategy = make_strategy();
      Training training(strategy, {.directory = arguments.at(0)});
      training.run_to(kSteps, [&](int step) {
        std::printf("step %d\n", step);
        std::fflush(stdout);
        if (step == 12 && strategy.worker_id() == 1 && arguments.at(1) == "lose") {
          const std::string marker = arguments.at(0) + "/killed";
          if (std::filesystem::exists(marker)) return;
          std::ofstream(marker) << "once";
          ::raise(SIGKILL);
        }
      });
      return training.result().substr(0, 16);
    } catch (const UnavailableError& error) {
      std::printf("attempt %d: %s\n", attempt, error.what());
      if (attempt == 3) throw;
    }
  }
}

std::string bracketed(const Tensor& values) {
  std::string text;
  for (int64_t i = 0; i < values.size(0); ++i) {
    text += (i == 0 ? "[" : ",") + std::to_string(values[i].item<int64_t>());
  }
  return text.empty() ? "[]" : text + "]";
}

std::string steps_of(const distribute::DistributedDataset& dataset) {
  std::string text;
  for (const auto& batch : dataset) {
    if (!text.empty()) text += " |";
    for (const Structure& piece : batch.values()) text += " " + bracketed(piece.tensor());
  }
  return text;
}

// What this task reads, a line for each kind of input.
std::string read(const Arguments& arguments) {
  config::set_logical_device_configuration("CPU", std::stoi(arguments.at(0)));
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  const auto distributed = [&](const data::Dataset& dataset, data::AutoShardPolicy policy) {
    data::Options options;
    options.experimental_distribute.auto_shard_policy = policy;
    return steps_of(strategy.experimental_distribute_dataset(dataset.with_options(options)));
  };
  const data::Dataset twelve = data::Dataset::range(12).batch(4);
  std::string text = "DATA" + distributed(twelve, data::AutoShardPolicy::DATA);
  text += "\nOFF" + distributed(twelve, data::AutoShardPolicy::OFF);
  text += "\nAUTO" + distributed(data::Dataset::range(9).batch(2), data::AutoShardPolicy::AUTO);
  text += "\nHINT" + distributed(data::Dataset::range(8).batch(4), data::AutoShardPolicy::HINT);
  try {
    distributed(twelve, data::AutoShardPolicy::FILE);
  } catch (const NotFoundError&) {
    text += "\nFILE not found";
  }
  // Worker 1 has less than worker 0.
  text +=
      "\nfunction" +
      steps_of(strategy.distribute_datasets_from_function([](const InputContext& context) {
        const int id = context.input_pipeline_id;
        return data::Dataset::range(context.num_input_pipelines * 100 + id, 206 - 3 * id).batch(2);
      }));
  return text;
}

// Who is who, and what all agree on.
std::string introduce(const Arguments& arguments) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  const auto extended = strategy.extended();
  std::ostringstream text;
  text << strategy.task() << " worker " << strategy.worker_id() << " of " << strategy.num_workers()
       << ", chief " << strategy.is_chief() << extended.should_checkpoint()
       << extended.should_save_summary() << extended.experimental_between_graph() << ", "
       << extended.worker_devices().at(0) << ", " << strategy.cluster_resolver()->source();

  auto scope = strategy.scope();
  const distribute::Variable v(at::full({2}, 5.0 + strategy.worker_id()));
  scope.close();
  text << ", starts from " << v.value()[0].item<double>();
  const double own = strategy.worker_id() + 1;
  text << ", sum " << strategy.reduce(ReduceOp::SUM, at::full({2}, own))[1].item<double>()
       << ", mean " << strategy.reduce(ReduceOp::MEAN, at::full({2}, own)).sum().item<double>();
  const auto rows = strategy.run([](ReplicaContext& context) {
    return at::full({context.replica_id_in_sync_group() + 1}, context.replica_id_in_sync_group(),
                    int64);
  });
  text << ", gathered " << bracketed(strategy.gather(rows, 0));

  // Only the chief writes.
  const auto writer =
      summary::create_file_writer(arguments.at(0) + "/" + std::to_string(strategy.worker_id()));
  {
    const auto as_default = writer.as_default();
    strategy.run([] { summary::scalar("one", 1.0, {.step = 1}); });
  }
  // A second strategy beside the first, over the same server.
  const MultiWorkerMirroredStrategy second = make_strategy();
  text << ", second " << second.reduce(ReduceOp::SUM, at::full({}, own)).item<double>();
  strategy.coordination().barrier("the end");
  return text.str();
}

void expect(const std::string& what, const Tensor& value, const Tensor& wanted) {
  if (value.sizes() == wanted.sizes() && at::equal(value.to(float64), wanted.to(float64))) return;
  std::ostringstream text;
  text << what << ": " << Structure(value) << ", but it should be " << Structure(wanted);
  throw UnknownError(text.str());
}

// What reference implementations compute with two replicas, here one in each worker.
std::string reduce_as_others_do(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  const int id = strategy.worker_id();
  const auto mine = [](const Tensor& value) { return PerReplica<Tensor>({value}); };
  expect("SUM", strategy.reduce(ReduceOp::SUM, mine(constant({1., 2.}))), constant({2., 4.}));
  expect("MEAN axis 0", strategy.reduce(ReduceOp::MEAN, mine(constant({1., 2.})), 0),
         constant(1.5));
  const Tensor row = id == 0 ? constant({0., 1., 2., 3.}) : constant({4., 5., 6., 7.});
  expect("SUM of rows", strategy.reduce(ReduceOp::SUM, mine(row)), constant({4., 6., 8., 10.}));
  expect("SUM axis 0", strategy.reduce(ReduceOp::SUM, mine(row), 0), constant(28.));
  const Tensor partial = id == 0 ? row : constant({4., 5.});
  expect("MEAN axis 0 of a partial batch", strategy.reduce(ReduceOp::MEAN, mine(partial), 0),
         constant(2.5));
  expect("gather", strategy.gather(mine(constant({{1}, {2}})), 0), constant({{1}, {2}, {1}, {2}}));
  // Rows: of worker 0 row 1, of worker 1 rows 1 and 3.
  const Tensor rows = id == 0 ? constant({{1., 2.}}) : constant({{3., 4.}, {5., 6.}});
  const Tensor indices = id == 0 ? constant({1}, int64) : constant({1, 3}, int64);
  const Tensor sparse = at::sparse_coo_tensor(indices.unsqueeze(0), rows, {5, 2});
  Tensor sum = zeros({5, 2});
  sum[1] = constant({4., 6.});
  sum[3] = constant({5., 6.});
  expect("SUM of sparse rows", strategy.reduce(ReduceOp::SUM, mine(sparse)).to_dense(), sum);

  // Variables: ON_WRITE and ON_READ.
  auto scope = strategy.scope();
  const auto variable = [](distribute::VariableSynchronization synchronization,
                           distribute::VariableAggregation aggregation) {
    return distribute::Variable(
        constant(15.),
        {.trainable = false, .synchronization = synchronization, .aggregation = aggregation});
  };
  using S = distribute::VariableSynchronization;
  using A = distribute::VariableAggregation;
  const auto summed = variable(S::ON_WRITE, A::SUM), averaged = variable(S::ON_WRITE, A::MEAN);
  const auto first = variable(S::ON_WRITE, A::ONLY_FIRST_REPLICA);
  const auto counted = variable(S::ON_READ, A::SUM);
  scope.close();
  strategy.run([&] {
    summed.assign(constant(2.));
    averaged.assign(constant(2.));
  });
  strategy.run([&](ReplicaContext& context) {
    const Tensor replica = at::full({}, context.replica_id_in_sync_group());
    first.assign(replica);
    counted.assign(replica);
    expect("all_reduce of ids", context.all_reduce(ReduceOp::SUM, replica), constant(1.));
  });
  expect("assign SUM", summed.value(), constant(4.));
  expect("assign MEAN", averaged.value(), constant(2.));
  expect("assign ONLY_FIRST_REPLICA", first.value(), constant(0.));
  expect("ON_READ SUM", counted.value(), constant(1.));
  const auto sums = strategy.extended().batch_reduce_to(
      ReduceOp::SUM, {{mine(constant(1.)), summed}, {mine(row), averaged}});
  expect("batch_reduce_to", sums[0].value(0), constant(2.));
  expect("batch_reduce_to of rows", sums[1].value(0), constant({4., 6., 8., 10.}));
  strategy.extended().update(
      summed, [](distribute::Variable& v, const Tensor& x) { v.assign(x); }, constant(1.));
  expect("update", summed.value(), constant(1.));
  try {
    strategy.reduce(ReduceOp::SUM, mine(partial));
  } catch (const Error& error) {
    return "refused by " + std::string(code_name(error.code()));
  }
  return "shapes that differ were added";
}

// One replica on worker 0, two on worker 1.
std::string differ_in_devices(const Arguments&) {
  const distribute::cluster_resolver::TFConfigClusterResolver told;
  config::set_logical_device_configuration("CPU", 1 + *told.task_id());
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  const auto ids = strategy.run([](ReplicaContext& context) {
    return at::full({1}, context.replica_id_in_sync_group(), int64);
  });
  std::string text =
      bracketed(strategy.gather(ids, 0)) + " of " + std::to_string(strategy.num_replicas_in_sync());
  try {
    strategy.experimental_distribute_dataset(data::Dataset::range(12).batch(6));
  } catch (const InvalidArgumentError&) {
    text += ", batches cannot be divided";
  }
  return text;
}

// Without TF_CONFIG: as torchrun starts a program.
std::string start_by_torchrun(const Arguments&) {
  const distribute::cluster_resolver::TFConfigClusterResolver told;
  const std::string address = told.cluster_spec().task_address("worker", 0);
  const int port = std::stoi(address.substr(address.find(':') + 1));
  ::unsetenv("TF_CONFIG");
  ::setenv("RANK", std::to_string(*told.task_id()).c_str(), 1);
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("MASTER_PORT", std::to_string(port - 1).c_str(), 1);
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  return strategy.cluster_resolver()->source() + ", sum " +
         std::to_string(strategy.reduce(ReduceOp::SUM, at::full({}, 2, int64)).item<int64_t>());
}

// ---- The tests.

MultiProcessOptions workers(int count, const std::string& function, Arguments arguments = {}) {
  return {.jobs = {{"worker", count}}, .function = function, .arguments = std::move(arguments)};
}

std::vector<std::string> values_of(const MultiProcessOptions& options) {
  MultiProcessRunner runner(options);
  runner.start();
  std::vector<std::string> values;
  for (auto& [task, value] : runner.join()) values.push_back(value);
  return values;
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

struct MultiWorker : ::testing::Test {
  MultiWorker() {
    directory = ::testing::TempDir() + "multi_worker_test.XXXXXX";  // mkdtemp fills it in
    if (::mkdtemp(directory.data()) == nullptr) throw UnknownError("no temporary directory");
  }
  ~MultiWorker() override { std::filesystem::remove_all(directory); }

  std::string directory;
};

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

TEST_F(MultiWorker, EachReadsItsShare) {
  auto read_by = values_of(workers(2, "read", {"1"}));
  EXPECT_EQ(read_by[0],
            "DATA [0,1] | [4,5] | [8,9]\n"
            "OFF [0,1] | [2,3] | [4,5] | [6,7] | [8,9] | [10,11]\n"
            "AUTO [0] | [2] | [4] | [6] | [8]\n"
            "HINT [0,1] | [2,3] | [4,5] | [6,7]\n"
            "FILE not found\n"
            "function [200,201] | [202,203] | [204,205]");
  EXPECT_EQ(read_by[1],
            "DATA [2,3] | [6,7] | [10,11]\n"
            "OFF [0,1] | [2,3] | [4,5] | [6,7] | [8,9] | [10,11]\n"
            "AUTO [1] | [3] | [5] | [7] | []\n"
            "HINT [0,1] | [2,3] | [4,5] | [6,7]\n"
            "FILE not found\n"
            "function [201,202] | [] | []");
}

TEST_F(MultiWorker, EveryTaskKnowsItsPart) {
  const auto said = values_of(
      {.jobs = {{"chief", 1}, {"worker", 1}}, .function = "introduce", .arguments = {directory}});
  const std::string common = "TF_CONFIG, starts from 5, sum 3, mean 3, gathered [0,1,1], second 3";
  EXPECT_EQ(said[0],
            "/job:chief/task:0 worker 0 of 2, chief 1111, "
            "/job:chief/replica:0/task:0/device:CPU:0, " +
                common);
  EXPECT_EQ(said[1],
            "/job:worker/task:0 worker 1 of 2, chief 0001, "
            "/job:worker/replica:0/task:0/device:CPU:0, " +
                common);
  EXPECT_FALSE(std::filesystem::is_empty(directory + "/0"));
  EXPECT_TRUE(!std::filesystem::exists(directory + "/1") ||
              std::filesystem::is_empty(directory + "/1"));
}

TEST_F(MultiWorker, ReducesAsOthersDo) {
  for (const std::string& text : values_of(workers(2, "reduce_as_others_do"))) {
    EXPECT_EQ(text, "refused by FAILED_PRECONDITION");
  }
}

// From a function nothing is divided: each worker has its batches, one for each replica.
TEST_F(MultiWorker, WithTwoReplicasEachReadsTwoPieces) {
  const auto read_by = values_of(workers(2, "read", {"2"}));
  EXPECT_THAT(read_by[0], AllOf(StartsWith("DATA [0] [2] | [4] [6] | [8] [10]\n"),
                                HasSubstr("function [200,201] [202,203] | [204,205] []")));
  EXPECT_THAT(read_by[1], AllOf(StartsWith("DATA [1] [3] | [5] [7] | [9] [11]\n"),
                                HasSubstr("function [201,202] [] | [] []")));
}

TEST_F(MultiWorker, WorkersMayHaveDifferentNumbersOfReplicas) {
  for (const std::string& text : values_of(workers(2, "differ_in_devices"))) {
    EXPECT_EQ(text, "[0,1,2] of 3, batches cannot be divided");
  }
}

TEST_F(MultiWorker, TorchrunsVariablesAreEnough) {
  for (const std::string& text : values_of(workers(2, "start_by_torchrun"))) {
    EXPECT_EQ(text, "torchrun, sum 4");
  }
}

// Signals worker 1, and returns how long worker 0 took to name it, in ms.
double detection_time(int signal) {
  MultiProcessRunner runner(workers(2, "step_for_ever"));
  runner.start();
  for (int task = 0; task < 2; ++task) runner.wait_for_line({"worker", task}, "started", kPatience);
  const double sent = now_ms();
  runner.kill({"worker", 1}, signal);
  const std::string line = runner.wait_for_line({"worker", 0}, "ended at", kPatience);
  EXPECT_THAT(line, AllOf(HasSubstr("UNAVAILABLE: lost /job:worker/task:1 ("),
                          HasSubstr(runner.address({"worker", 1}))));
  return std::stod(line.substr(line.find("at ") + 3)) - sent;
}

TEST_F(MultiWorker, AKilledWorkerIsNamedWithinASecond) {
  const char* more = std::getenv("COHORT_FAULT_REPETITIONS");
  std::vector<double> times;
  for (int i = 0; i < (more ? std::atoi(more) : 2); ++i) times.push_back(detection_time(SIGKILL));
  std::sort(times.begin(), times.end());
  std::printf("kill -9 to a typed error: median %.0f ms, worst %.0f ms of %zu\n",
              times[times.size() / 2], times.back(), times.size());
  EXPECT_THAT(times.back(), Lt(1000));
}

TEST_F(MultiWorker, AStoppedWorkerIsNamedByItsSilence) {
  const double time = detection_time(SIGSTOP);
  std::printf("SIGSTOP to a typed error: %.0f ms\n", time);
  EXPECT_THAT(time, AllOf(Lt(4500), ::testing::Gt(500)));
}

TEST_F(MultiWorker, AnErrorOfOneIsThatOfAll) {
  MultiProcessRunner runner(workers(2, "throw_on_one"));
  runner.start();
  for (const TaskOutcome& outcome : runner.wait_all()) {
    EXPECT_EQ(outcome.code, Code::kDataLoss) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("record 7 is damaged"));
  }
}

TEST_F(MultiWorker, AWorkerThatEndsEarlyIsNamed) {
  MultiProcessRunner runner(workers(2, "end_early"));
  runner.start();
  const auto outcomes = runner.wait_all();
  EXPECT_EQ(outcomes[0].code, Code::kFailedPrecondition) << outcomes[0].error;
  EXPECT_THAT(outcomes[0].error, AllOf(HasSubstr("task"), HasSubstr("the end of the strategy")));
  EXPECT_EQ(outcomes[1].value, "done") << outcomes[1].error;
}

TEST_F(MultiWorker, OtherClusterSpecsAreRefused) {
  MultiProcessRunner runner(workers(2, "disagree"));
  runner.start();
  bool named = false;
  for (const TaskOutcome& outcome : runner.wait_all()) {
    EXPECT_NE(outcome.code, Code::kOk);
    named = named || (outcome.code == Code::kFailedPrecondition &&
                      outcome.error.find("127.0.0.1:1'") != std::string::npos);
  }
  EXPECT_TRUE(named);
}

TEST_F(MultiWorker, TheGroupFormsAgainWithoutARestartOfTheSurvivor) {
  const std::string calm = values_of(workers(2, "survive", {directory + "/calm", "keep"}))[0];
  std::filesystem::create_directory(directory + "/killed");
  MultiProcessRunner runner(workers(2, "survive", {directory + "/killed", "lose"}));
  runner.start();
  runner.wait_for_line({"worker", 0}, "attempt 0: lost /job:worker/task:1", kPatience);
  runner.restart({"worker", 1});
  for (const auto& [task, value] : runner.join()) EXPECT_EQ(value, calm) << task;
  EXPECT_EQ(runner.log({"worker", 0}).find("attempt 1:"), std::string::npos);
}

// ---- Under the launcher: this program again, as train_under_launcher.

struct Launched {
  int exit_code;
  std::string output;
  std::vector<int> restarts;
};

Launched launch_training(const std::string& directory, const std::string& fault, int restarts) {
  internal::JobPlan plan =
      internal::make_plan({.program = std::filesystem::read_symlink("/proc/self/exe"),
                           .arguments = {"--train", directory, fault},
                           .num_workers = 2},
                          internal::usable_cores());
  const internal::FreePorts ports = internal::pick_free_ports(2);
  internal::set_addresses(plan, {ports[0], ports[1]});
  std::FILE* const lines = std::tmpfile();
  const internal::LaunchResult result = internal::launch(plan, {.restarts = restarts,
                                                                .restart_delay = 1ms,
                                                                .out = {::fileno(lines)},
                                                                .err = {::fileno(lines)}});
  Launched launched{.exit_code = result.exit_code, .output = {}, .restarts = {}};
  for (const auto& task : result.tasks) launched.restarts.push_back(task.restarts);
  std::rewind(lines);
  for (int c = std::fgetc(lines); c != EOF; c = std::fgetc(lines)) {
    launched.output += static_cast<char>(c);
  }
  std::fclose(lines);
  return launched;
}

std::string digest_in(const Launched& launched, int worker) {
  const std::string before = "[worker:" + std::to_string(worker) + "] digest: ";
  const size_t at = launched.output.rfind(before);
  EXPECT_NE(at, std::string::npos) << launched.output;
  return at == std::string::npos ? "" : launched.output.substr(at + before.size(), 16);
}

int train_under_launcher(const std::string& directory, const std::string& fault) {
  return run_program([&] {
    random::set_seed(8);
    const MultiWorkerMirroredStrategy strategy = make_strategy();
    Training training(strategy, {.directory = directory});
    training.run_to(kSteps, [&](int step) {
      const std::string marker = directory + "/struck";
      if (step != 13 || strategy.worker_id() != 1 || std::filesystem::exists(marker)) return;
      if (fault == "none") return;
      std::ofstream(marker) << "once";
      if (fault == "throw") {
        strategy.run([] { throw InvalidArgumentError("a fault of worker 1's own"); });
      }
      ::raise(SIGKILL);
    });
    std::printf("digest: %s\n", training.result().substr(0, 16).c_str());
  });
}

TEST_F(MultiWorker, AKilledJobEndsWithTheBitsOfOneThatWasNot) {
  const Launched calm = launch_training(directory + "/calm", "none", 0);
  EXPECT_EQ(calm.exit_code, 0) << calm.output;
  EXPECT_EQ(digest_in(calm, 0), digest_in(calm, 1));
  const Launched killed = launch_training(directory + "/killed", "kill", 1);
  EXPECT_EQ(killed.exit_code, 0) << killed.output;
  EXPECT_EQ(killed.restarts, (std::vector<int>{1, 1}));
  EXPECT_THAT(killed.output, AllOf(HasSubstr("[worker:0] multi_worker_te"),
                                   HasSubstr(": UNAVAILABLE: lost /job:worker/task:1 (")));
  for (int worker = 0; worker < 2; ++worker) {
    EXPECT_EQ(digest_in(killed, worker), digest_in(calm, 0)) << worker;
  }
}

TEST_F(MultiWorker, AFaultThatWouldComeAgainEndsTheJob) {
  const Launched thrown = launch_training(directory, "throw", 3);
  EXPECT_EQ(thrown.exit_code, 64) << thrown.output;
  EXPECT_THAT(thrown.output, AllOf(HasSubstr("[worker:0]"), HasSubstr("a fault of worker 1's own"),
                                   Not(HasSubstr("restart 1"))));
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
}  // namespace cohort

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--train") {
    return cohort::train_under_launcher(argv[2], argv[3]);
  }
  return cohort::testing::multi_process_main(argc, argv,
                                             {{"train", cohort::train_in_step},
                                              {"train_mirrored", cohort::train_mirrored},
                                              {"step_for_ever", cohort::step_for_ever},
                                              {"throw_on_one", cohort::throw_on_one},
                                              {"end_early", cohort::end_early},
                                              {"disagree", cohort::disagree},
                                              {"reduce_as_others_do", cohort::reduce_as_others_do},
                                              {"differ_in_devices", cohort::differ_in_devices},
                                              {"start_by_torchrun", cohort::start_by_torchrun},
                                              {"survive", cohort::survive},
                                              {"read", cohort::read},
                                              {"introduce", cohort::introduce}},
                                             [](int count, char** arguments) {
                                               ::testing::InitGoogleTest(&count, arguments);
                                               return RUN_ALL_TESTS();
                                             });
}
