// What MultiWorkerMirroredStrategy gives each of several processes: input, values, variables,
// names.
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "tests/cluster/multi_worker_training.h"

namespace cohort::multi_worker {
namespace {

using distribute::InputContext;
using distribute::PerReplica;
using distribute::ReduceOp;
using distribute::ReplicaContext;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

// How many threads an operation of a step may use.
std::string count_threads(const Arguments&) {
  const MultiWorkerMirroredStrategy strategy = make_strategy();
  return std::to_string(strategy.run([] { return at::get_num_threads(); }).value(0));
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

TEST_F(MultiWorker, OfOneHostDivideItsCores) {
  cpu_set_t usable;
  ASSERT_EQ(::sched_getaffinity(0, sizeof usable, &usable), 0);
  for (const std::string& text : values_of(workers(2, "count_threads"))) {
    EXPECT_EQ(text, std::to_string(std::max(1, CPU_COUNT(&usable) / 2)));
  }
}

}  // namespace
}  // namespace cohort::multi_worker

int main(int argc, char** argv) {
  using namespace cohort::multi_worker;
  return run_main(argc, argv,
                  {{"reduce_as_others_do", reduce_as_others_do},
                   {"differ_in_devices", differ_in_devices},
                   {"start_by_torchrun", start_by_torchrun},
                   {"count_threads", count_threads},
                   {"read", cohort::multi_worker::read},
                   {"introduce", introduce}});
}
