// Sums over NCCL between simulated GPUs: of the replicas of one task, and between tasks.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <gmock/gmock.h>

#include "cohort/collective/nccl/nccl_communicator.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/testing_group.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/gradients/testing_task_gradients.h"
#include "cohort/distribute/reduce/all_reduce_ops.h"
#include "cohort/distribute/reduce/reduction_to_one_device.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/ops/random.h"
#include "cohort/testing/device/fake_nccl.h"
#include "cohort/testing/device/simulated_gpus.h"

namespace cohort::distribute {
namespace {

using ::testing::HasSubstr;

class GpuReductions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { testing::use_fake_nccl(); }
  const testing::SimulatedGpus gpus_{4};
};

std::vector<float> numbers_of(const Tensor& tensor) {
  const Tensor host = tensor.cpu().contiguous();
  return {host.data_ptr<float>(), host.data_ptr<float>() + host.numel()};
}

Tensor on_gpu(int index, float value) {
  return at::full({2}, value, at::device(internal::torch_device(internal::str("GPU:", index))));
}

TEST_F(GpuReductions, NcclAllReduceLeavesTheSumOnEachGpu) {
  for (const int packs : {0, 1, 2}) {
    const NcclAllReduce ops(packs);
    const PerReplica<Tensor> value({on_gpu(0, 1), on_gpu(1, 2), on_gpu(2, 4)});
    const testing::DeviceCounts before = testing::device_counts();
    for (int round = 0; round < 2; ++round) {  // the second one on the same connections
      const auto sums = ops.reduce(ReduceOp::SUM, value, value);
      for (size_t r = 0; r < 3; ++r) {
        EXPECT_EQ(sums.value(r).device(), value.value(r).device());
      }
      if (round == 0) {
        EXPECT_EQ((testing::device_counts() - before).host_waits, 0);
        continue;
      }
      for (size_t r = 0; r < 3; ++r) {
        EXPECT_THAT(numbers_of(sums.value(r)), ::testing::ElementsAre(7, 7));
      }
    }
    EXPECT_THAT(numbers_of(value.value(0)), ::testing::ElementsAre(1, 1));
    EXPECT_THAT(numbers_of(ops.reduce(ReduceOp::MEAN, value, value).value(1)),
                ::testing::Each(::testing::FloatEq(7.0f / 3)));
  }
}

TEST_F(GpuReductions, NcclAllReduceConnectsAgainAfterAFailure) {
  const NcclAllReduce ops;
  const PerReplica<Tensor> value({on_gpu(0, 1), on_gpu(1, 2)});
  {
    const testing::NcclFault fault("COHORT_FAKE_NCCL_ERROR", "ncclAllReduce=1");
    EXPECT_THROW(ops.reduce(ReduceOp::SUM, value, value), UnavailableError);
  }
  EXPECT_THAT(numbers_of(ops.reduce(ReduceOp::SUM, value, value).value(0)),
              ::testing::ElementsAre(3, 3));
}

TEST_F(GpuReductions, NcclAllReduceRefusesAGpuTwice) {
  const PerReplica<Tensor> value({on_gpu(1, 1), on_gpu(1, 2)});
  try {
    const NcclAllReduce ops;
    ops.reduce(ReduceOp::SUM, value, value);
    FAIL() << "reduced";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("twice: NCCL adds values on GPUs, each on one of its own"));
  }
}

TEST_F(GpuReductions, NcclIsChosenWhereAllAreGpusOfTheirOwn) {
  const auto chosen = choose_cross_device_ops({"GPU:0", "GPU:1"});
  EXPECT_NE(dynamic_cast<const NcclAllReduce*>(chosen.get()), nullptr);
  const auto mixed = choose_cross_device_ops({"GPU:0", "CPU:0"});
  EXPECT_NE(dynamic_cast<const ReductionToOneDevice*>(mixed.get()), nullptr);
}

// The gradients of a step: of a matrix, of rows (in some steps dense), of a vector that is left
// alone in some steps.
std::vector<Tensor> gradients_of(int replica, int step, c10::Device device, bool with_rows) {
  const auto generator = random::RandomGenerator::from_seed(100 * step + replica);
  std::vector<Tensor> all{generator.normal({7, 5}), generator.normal({6, 2}),
                          generator.normal({9})};
  for (Tensor& one : all) one = one.to(device);
  if (with_rows && step % 3 != 1) {
    const Tensor rows = at::full({1, 2}, int64_t{replica}, at::dtype(at::kLong)).to(device);
    const Tensor values = generator.normal({2, 2}).to(device);
    all[1] = at::sparse_coo_tensor(rows, values, {6, 2}, values.options().layout(at::kSparse));
  }
  if (step == 2 || (step == 3 && replica % 2 == 0)) all[2] = Tensor();
  return all;
}

// Five steps of Adam under the strategy; the weights of each replica, and whether all are equal.
std::vector<Tensor> trained(const Strategy& strategy, Arrival arrival, double clip,
                            bool with_rows = true) {
  const auto rule = optim::make_adam({});
  const auto targets = make_targets(strategy, {{7, 5}, {6, 2}, {9}}, *rule);
  const auto exchange = strategy.core()->make_exchange(targets);
  for (int step = 0; step < 5; ++step) {
    strategy.run([&](ReplicaContext& context) {
      const int replica = context.replica_id_in_sync_group();
      const auto gradients =
          gradients_of(replica, step,
                       targets[0]
                           .variable.components()
                           .value(static_cast<size_t>(context.local_replica_id()))
                           .device(),
                       with_rows);
      bring_all(*exchange, context, gradients, arrival, backward(0, gradients.size()));
      exchange->finish(
          context,
          {.rule = *rule, .learning_rate = 0.1, .iteration = step, .global_clipnorm = clip});
    });
  }
  std::vector<Tensor> weights;
  for (const UpdateTarget& target : targets) {
    const auto parts = target.variable.components();
    weights.push_back(parts.value(0).detach().cpu().clone());
    for (const Tensor& part : parts.values()) {
      EXPECT_TRUE(at::equal(part.detach().cpu(), weights.back()));
    }
  }
  return weights;
}

TEST_F(GpuReductions, AMirroredStrategyTrainsByNcclAllReduce) {
  const LogicalCpus cpus(2);
  for (const double clip : {0.0, 0.5}) {
    const MirroredStrategy on_hosts({"CPU:0", "CPU:1"});
    const auto expected = trained(on_hosts, Arrival::kAtOnce, clip, false);
    const MirroredStrategy on_gpus(
        {"GPU:0", "GPU:1"}, {.cross_device_ops = choose_cross_device_ops({"GPU:0", "GPU:1"})});
    const auto found = trained(on_gpus, Arrival::kAtOnce, clip, false);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT((found[i] - expected[i]).abs().max().item<float>(), 1e-5) << i;
    }
  }
}

// The weights of each of two tasks of so many replicas.
std::vector<std::vector<Tensor>> train_two_tasks(const std::string& type, int replicas,
                                                 Arrival arrival, double clip) {
  const LogicalCpus cpus(replicas);
  const auto device_of = [&](int task, int replica) {
    const int index = type == "GPU" ? task * replicas + replica : replica;
    return internal::str(type, ":", index);
  };
  const auto communicators =
      collective::make_group(2, 0, [&](const collective::GroupMember& member) {
        auto host = collective::make_shared_memory_communicator(member);
        if (type == "CPU") return host;
        return collective::make_nccl_communicator(
            std::move(host), {internal::torch_device(device_of(member.rank, 0))},
            std::chrono::seconds(30));
      });
  std::vector<std::vector<Tensor>> results(2);
  std::vector<std::exception_ptr> errors(2);
  std::vector<std::thread> threads;
  for (int task = 0; task < 2; ++task) {
    threads.emplace_back([&, task] {
      const auto own = static_cast<size_t>(task);
      try {
        std::vector<std::string> devices;
        for (int r = 0; r < replicas; ++r) devices.push_back(canonicalize(device_of(task, r)));
        const Strategy strategy(std::make_shared<internal::LocalStrategy>(
            internal::LocalStrategy::Config{.name = "several tasks",
                                            .devices = std::move(devices),
                                            .communicator = communicators[own],
                                            .communication_options = {.bytes_per_pack = 64}}));
        results[own] = trained(strategy, arrival, clip);
      } catch (...) {
        errors[own] = std::current_exception();
        communicators[own]->abort(errors[own]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return results;
}

TEST_F(GpuReductions, TwoTasksHaveTheValuesOfHosts) {
  for (const int replicas : {1, 2}) {
    for (const Arrival arrival : {Arrival::kAtOnce, Arrival::kOneByOne}) {
      for (const double clip : {0.0, 0.5}) {
        const auto expected = train_two_tasks("CPU", replicas, arrival, clip);
        const auto found = train_two_tasks("GPU", replicas, arrival, clip);
        for (size_t task = 0; task < 2; ++task) {
          ASSERT_EQ(found[task].size(), expected[0].size());
          for (size_t i = 0; i < found[task].size(); ++i) {
            EXPECT_TRUE(at::equal(found[task][i], found[0][i])) << i;
            EXPECT_LT((found[task][i] - expected[0][i]).abs().max().item<float>(), 1e-5)
                << i << " with " << replicas << " replicas, clip " << clip;
          }
        }
      }
    }
  }
}

// Dense gradients stay on the devices: only numbers travel by hosts.
TEST_F(GpuReductions, AStepOfTwoTasksCopiesNothingToHosts) {
  const auto communicators =
      collective::make_group(2, 0, [&](const collective::GroupMember& member) {
        return collective::make_nccl_communicator(
            collective::make_shared_memory_communicator(member),
            {internal::torch_device(internal::str("GPU:", member.rank))}, std::chrono::seconds(30));
      });
  std::vector<std::thread> threads;
  std::atomic<int> arrived{0};
  testing::DeviceCounts before, made;
  const auto meet = [&](int round) {
    for (++arrived; arrived < 2 * round;) std::this_thread::yield();
  };
  for (int task = 0; task < 2; ++task) {
    threads.emplace_back([&, task] {
      const Strategy strategy(
          std::make_shared<internal::LocalStrategy>(internal::LocalStrategy::Config{
              .name = "several tasks",
              .devices = {canonicalize(internal::str("GPU:", task))},
              .communicator = communicators[static_cast<size_t>(task)]}));
      const auto rule = optim::make_adam({});
      const auto targets = make_targets(strategy, {{7, 5}, {9}}, *rule);
      const auto exchange = strategy.core()->make_exchange(targets);
      const c10::Device device = internal::torch_device(internal::str("GPU:", task));
      const std::vector<Tensor> gradients{at::ones({7, 5}, at::device(device)),
                                          at::ones({9}, at::device(device))};
      for (int step = 0; step < 4; ++step) {
        if (step == 3) {
          meet(1);
          if (task == 0) before = testing::device_counts();
          meet(2);
        }
        strategy.run([&](ReplicaContext& context) {
          bring_all(*exchange, context, gradients, Arrival::kOneByOne, {1, 0});
          exchange->finish(context, {.rule = *rule, .learning_rate = 0.1, .iteration = step});
        });
      }
      meet(3);
      if (task == 0) made = testing::device_counts() - before;
      meet(4);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made.to_host, 0);
  EXPECT_EQ(made.host_waits, 0);
  EXPECT_EQ(made.between_devices, 0);
}

}  // namespace
}  // namespace cohort::distribute
