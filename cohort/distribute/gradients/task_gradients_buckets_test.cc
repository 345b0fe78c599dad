// What of the gradients travels between tasks, and when: buckets during the backward pass, rows
// alone.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sparse_coo_tensor.h>

#include "cohort/distribute/gradients/testing_task_gradients.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/optim/sgd.h"

namespace cohort::distribute {
namespace {

TEST_P(TaskGradients, BucketsLeaveWhileTheBackwardPassStillRuns) {
  if (GetParam().tasks == 1) return;  // nothing leaves
  Watch watch;
  run_all_tasks(
      GetParam().tasks, GetParam().replicas_each,
      [&](const Strategy& strategy, int task) {
        const auto rule = optim::make_sgd({});
        const auto targets = make_targets(strategy, {{4}, {5}, {6}}, *rule);
        const auto exchange = strategy.core()->make_exchange(targets);
        const std::vector<Tensor> gradients{at::ones({4}), at::ones({5}), at::ones({6})};
        for (int step = 0; step < 3; ++step) {
          Watched& watched = *watch.of_task[static_cast<size_t>(task)];
          strategy.run([&](ReplicaContext& context) {
            exchange->begin(context, Arrival::kOneByOne);
            if (context.local_replica_id() == 0) watched.forget();
            context.all_reduce(ReduceOp::SUM, number(1));  // nobody before it is forgotten
            for (size_t i = 3; i-- > 0;) {
              exchange->bring(context, i, gradients[i]);
              // The first step learns what there is; the last bucket leaves with finish.
              if (step > 0 && i > 0) {
                EXPECT_TRUE(watched.saw(internal::str("gradients ", 3 - i, " of 3")));
              }
            }
            exchange->finish(context, {.rule = *rule, .learning_rate = 1});
          });
        }
        const double expected = 1 - 3.0 * GetParam().replicas();
        EXPECT_TRUE(at::equal(targets[2].variable.value(), at::full({6}, expected, float32)));
      },
      watch.options());
}

TEST_P(TaskGradients, CollectivesOfTheStepGoBetweenTheBuckets) {
  const int n = GetParam().replicas();
  run_all_tasks(
      GetParam().tasks, GetParam().replicas_each,
      [&](const Strategy& strategy, int) {
        const auto rule = optim::make_sgd({});
        const auto targets = make_targets(strategy, {{4}, {5}, {6}}, *rule);
        const auto exchange = strategy.core()->make_exchange(targets);
        for (int step = 0; step < 4; ++step) {
          strategy.run([&](ReplicaContext& context) {
            exchange->begin(context, Arrival::kOneByOne);
            for (size_t i = 3; i-- > 0;) {
              exchange->bring(context, i, at::ones(targets[i].variable.shape()));
              if (step != 3) {
                EXPECT_EQ(context.all_reduce(ReduceOp::SUM, number(1)).item<double>(), n);
              }
            }
            exchange->finish(context, {.rule = *rule, .learning_rate = 1});
          });
        }
        EXPECT_TRUE(at::equal(targets[0].variable.value(), at::full({4}, 1.0 - 4 * n, float32)));
      },
      {.communication_options = {.bytes_per_pack = 1}});
}

TEST(TaskGradientsBytes, OfAnEmbeddingOnlyTheRowsTravel) {
  Watch watch;
  run_all_tasks(
      2, 1,
      [&](const Strategy& strategy, int task) {
        const auto rule = optim::make_sgd({});
        const auto targets = make_targets(strategy, {{1'000'000, 8}, {16}}, *rule);
        const auto exchange = strategy.core()->make_exchange(targets);
        Watched& watched = *watch.of_task[static_cast<size_t>(task)];
        for (int step = 0; step < 3; ++step) {
          watched.forget();
          strategy.run([&](ReplicaContext& context) {
            const Tensor ids = at::arange(32).reshape({1, 32}) * 31'250 + 10 * task;
            const std::vector<Tensor> gradients{
                at::sparse_coo_tensor(ids, at::ones({32, 8}), {1'000'000, 8}), at::ones({16})};
            bring_all(*exchange, context, gradients, Arrival::kOneByOne, {1, 0});
            exchange->finish(context, {.rule = *rule, .learning_rate = 1});
          });
          constexpr int64_t kRows = 32 * (8 + 8 * sizeof(float)), kDense = 18 * sizeof(float);
          EXPECT_GE(watched.bytes, kRows + kDense);
          EXPECT_LE(watched.bytes, kRows + kDense + 256);  // and what the tasks agree on
          // The dense gradient; the rows and how many they are. Over sockets each has its
          // fingerprint sent before.
          if (step > 0) {
            EXPECT_EQ(watched.calls(), 4u);
          }
        }
        const Tensor weights = targets[0].variable.value();
        for (const int64_t row : {int64_t{0}, int64_t{10}, int64_t{31'250}, int64_t{968'760}}) {
          EXPECT_TRUE(at::equal(weights[row], at::full({8}, -2.0))) << row;
        }
        EXPECT_EQ(weights.sum().item<double>(), 8e6 - 2 * 3 * 32 * 8);
      },
      watch.options(/*bytes_per_pack=*/0));
}

TEST(TaskGradientsBytes, ExchangesThatComeAndGoUseTheSameMemory) {
  Watch watch;
  run_all_tasks(
      2, 1,
      [&](const Strategy& strategy, int task) {
        const auto rule = optim::make_sgd({});
        const auto targets = make_targets(strategy, {{4}, {5}}, *rule);
        const auto step = [&] {
          const auto exchange = strategy.core()->make_exchange(targets);
          for (int i = 0; i < 3; ++i) {
            strategy.run([&](ReplicaContext& context) {
              bring_all(*exchange, context, {at::ones({4}), at::ones({5})}, Arrival::kOneByOne,
                        {1, 0});
              exchange->finish(context, {.rule = *rule, .learning_rate = 1});
            });
          }
        };
        for (int i = 0; i < 2; ++i)
          step();  // the first one's memory is free once the second has called
        const int before = watch.of_task[static_cast<size_t>(task)]->buffers;
        for (int i = 0; i < 5; ++i) step();
        EXPECT_EQ(watch.of_task[static_cast<size_t>(task)]->buffers, before);
      },
      watch.options());
}

// A generator and its adversary take turns.
TEST_P(TaskGradients, OfSeveralOptimizersTakeTurns) {
  const int n = GetParam().replicas();
  run_all_tasks(GetParam().tasks, GetParam().replicas_each, [&](const Strategy& strategy, int) {
    const auto rule = optim::make_sgd({});
    const auto first = make_targets(strategy, {{4}, {5}}, *rule, float32, "generator");
    const auto second = make_targets(strategy, {{4}, {5}}, *rule, float32, "adversary");
    const auto of_first = strategy.core()->make_exchange(first);
    const auto of_second = strategy.core()->make_exchange(second);
    for (int step = 0; step < 4; ++step) {
      strategy.run([&](ReplicaContext& context) {
        for (const auto* exchange : {&of_first, &of_second}) {
          if (step == 2 && exchange == &of_first) continue;
          bring_all(**exchange, context, {at::ones({4}), at::ones({5})}, Arrival::kOneByOne,
                    {1, 0});
          (*exchange)->finish(context, {.rule = *rule, .learning_rate = 1});
        }
      });
    }
    EXPECT_TRUE(at::equal(first[0].variable.value(), at::full({4}, 1.0 - 3 * n, float32)));
    EXPECT_TRUE(at::equal(second[1].variable.value(), at::full({5}, 1.0 - 4 * n, float32)));
  });
}

}  // namespace
}  // namespace cohort::distribute
