// Tasks that fail, are lost or differ while gradients go between them.
#include <ATen/ops/arange.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cohort/collective/testing_members.h"
#include "cohort/distribute/gradients/testing_task_gradients.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/optim/sgd.h"

namespace cohort::distribute {
namespace {

using collective::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Three steps of three variables in buckets of one; `disturb` is called before each gradient is
// passed, with the step and the number of gradients that are passed already.
std::vector<std::exception_ptr> run_disturbed(
    Watch& watch,
    const std::function<void(const Strategy&, int task, int step, int passed)>& disturb,
    std::vector<Tensor>* weights = nullptr) {
  return run_tasks(
      2, 1,
      [&](const Strategy& strategy, int task) {
        const auto rule = optim::make_sgd({});
        const auto targets = make_targets(strategy, {{4}, {5}, {6}}, *rule);
        const auto exchange = strategy.core()->make_exchange(targets);
        try {
          for (int step = 0; step < 3; ++step) {
            strategy.run([&](ReplicaContext& context) {
              exchange->begin(context, Arrival::kOneByOne);
              for (size_t i = 3; i-- > 0;) {
                disturb(strategy, task, step, 2 - static_cast<int>(i));
                exchange->bring(context, i, at::ones(targets[i].variable.shape()));
              }
              exchange->finish(context, {.rule = *rule, .learning_rate = 1});
            });
          }
        } catch (...) {
          if (weights != nullptr) {
            weights[task] = {targets[0].variable.value().clone(),
                             targets[2].variable.value().clone()};
          }
          throw;
        }
      },
      watch.options());
}

TEST(TaskGradientsErrors, ATaskThatFailsInItsBackwardPassIsNamedAndNothingIsUpdated) {
  Watch watch;
  std::vector<Tensor> weights[2];
  const auto errors = run_disturbed(
      watch,
      [](const Strategy&, int task, int step, int passed) {
        if (task == 1 && step == 2 && passed == 2) throw OutOfRangeError("no such row");
      },
      weights);
  EXPECT_EQ(message_of<OutOfRangeError>(errors[1]), "replica 1: no such row");
  EXPECT_THAT(message_of<OutOfRangeError>(errors[0]),
              HasSubstr("task 1 has given up: replica 1: no such row"));
  for (const auto& of_task : weights) {  // after two steps, on both
    for (const Tensor& one : of_task) EXPECT_EQ(one[0].item<double>(), 1 - 2 * 2);
  }
}

TEST(TaskGradientsErrors, APeerThatIsLostInTheMiddleOfABucketEndsTheStepOfAll) {
  Watch watch;
  std::vector<Tensor> weights[2];
  const auto errors = run_disturbed(
      watch,
      [&](const Strategy&, int task, int step, int passed) {
        if (task == 1 && step == 2 && passed == 0) watch.of_task[1]->broken = "gradients 2 of 3";
      },
      weights);
  EXPECT_THAT(message_of<UnavailableError>(errors[1]),
              HasSubstr("its network card was pulled out"));
  EXPECT_THAT(message_of<UnavailableError>(errors[0]),
              AllOf(HasSubstr("task 1"), HasSubstr("its network card was pulled out")));
  for (const auto& of_task : weights) {
    for (const Tensor& one : of_task) EXPECT_EQ(one[0].item<double>(), 1 - 2 * 2);
  }
}

TEST(TaskGradientsErrors, ABackwardPassEndsWithTheFirstGradientAfterABucketHasFailed) {
  Watch watch;
  int passed_by_failed_task = 0;
  const auto errors =
      run_disturbed(watch, [&](const Strategy& strategy, int task, int step, int passed) {
        if (step != 1 || task != 1) return;
        if (passed == 0) watch.of_task[1]->broken = "gradients 1 of 3, beginning with 'v2'";
        if (passed == 1) strategy.core()->group().drain();
        ++passed_by_failed_task;
      });
  EXPECT_EQ(passed_by_failed_task, 2);
  EXPECT_THAT(message_of<UnavailableError>(errors[1]), HasSubstr("pulled out"));
}

TEST(TaskGradientsErrors, AnotherOrderOfVariablesIsRefusedWithBothNames) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto rule = optim::make_sgd({});
    auto targets = make_targets(strategy, {{4}, {4}, {5}}, *rule);
    if (task == 1) std::swap(targets[0], targets[1]);
    const auto exchange = strategy.core()->make_exchange(targets);
    strategy.run([&](ReplicaContext& context) {
      bring_all(*exchange, context, {at::ones({4}), at::ones({4}), at::ones({5})},
                Arrival::kOneByOne, {2, 1, 0});
      exchange->finish(context, {.rule = *rule, .learning_rate = 1});
    });
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<InvalidArgumentError>(error),
                HasSubstr("at position 0 task 0 updates 'v0' float32 [4], task 1 updates 'v1' "
                          "float32 [4]"));
  }
}

TEST(TaskGradientsErrors, AnotherNumberOfVariablesIsRefused) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto rule = optim::make_sgd({});
    auto targets = make_targets(strategy, {{4}, {5}}, *rule);
    if (task == 1) targets.pop_back();
    const auto exchange = strategy.core()->make_exchange(targets);
    strategy.run([&](ReplicaContext& context) {
      bring_all(*exchange, context, {at::ones({4}), at::ones({5})}, Arrival::kAtOnce,
                forward(0, targets.size()));
      exchange->finish(context, {.rule = *rule, .learning_rate = 1});
    });
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<InvalidArgumentError>(error),
                AllOf(HasSubstr("task 0 updates 2 variables"), HasSubstr("1 variables")));
  }
}

TEST(TaskGradientsErrors, OptimizersInAnotherOrderAreRefusedWithBothNames) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto rule = optim::make_sgd({});
    const auto first = make_targets(strategy, {{4}}, *rule, float32, "generator");
    const auto second = make_targets(strategy, {{4}}, *rule, float32, "adversary");
    const auto of_first = strategy.core()->make_exchange(first);
    const auto of_second = strategy.core()->make_exchange(second);
    for (int step = 0; step < 3; ++step) {
      strategy.run([&](ReplicaContext& context) {
        for (const bool turn : {true, false}) {
          GradientExchange& exchange = turn == (step == 2 && task == 1) ? *of_second : *of_first;
          bring_all(exchange, context, {at::ones({4})}, Arrival::kOneByOne, {0});
          exchange.finish(context, {.rule = *rule, .learning_rate = 1});
        }
      });
    }
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                AllOf(HasSubstr("'generator0'"), HasSubstr("'adversary0'")));
  }
}

TEST(TaskGradientsErrors, GradientsOnTheirWayMustBeAggregated) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int) {
    const auto rule = optim::make_sgd({});
    const auto targets = make_targets(strategy, {{4}}, *rule);
    const auto exchange = strategy.core()->make_exchange(targets);
    strategy.run([&](ReplicaContext& context) {
      bring_all(*exchange, context, {at::ones({4})}, Arrival::kOneByOne, {0});
      exchange->finish(context, {.rule = *rule, .learning_rate = 1, .aggregate_gradients = false});
    });
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<InvalidArgumentError>(error), HasSubstr("pass them at once"));
  }
}

// Writes a number into what its task tells of its rows.
class Garbled final : public collective::ForwardingCommunicator {
 public:
  Garbled(std::shared_ptr<collective::Communicator> backend, size_t place, int64_t number)
      : ForwardingCommunicator(std::move(backend)), place_(place), number_(number) {}

  void gather_bytes(std::span<const char> mine, collective::GatheredBytes& all,
                    const collective::CallOptions& options) override {
    message_.assign(mine.begin(), mine.end());
    std::memcpy(message_.data() + place_, &number_, sizeof number_);
    ForwardingCommunicator::gather_bytes(message_, all, options);
  }

 private:
  void before(collective::CallOptions&, int64_t) override {}

  const size_t place_;
  const int64_t number_;
  std::vector<char> message_;
};

// A message: for each variable how many gradients there are, how many of them sparse, how many
// rows; in the next cache line the ids, then the values.
constexpr size_t kCount = 2 * sizeof(int64_t), kSecondId = 64 + sizeof(int64_t);

struct Garbling {
  size_t place;
  int64_t number;
  const char* error;
};

TEST(TaskGradientsErrors, RowsThatAVariableHasNotAreRefused) {
  for (const Garbling& garbling :
       {Garbling{kCount, -1, "task 1 sent -1 rows of 'v0', which has 8"},
        Garbling{kCount, 9, "task 1 sent 9 rows of 'v0', which has 8"},
        Garbling{kCount, int64_t{1} << 61, "task 1 sent 2305843009213693952 rows"},
        Garbling{kSecondId, -7, "task 1 sent row -7 of 'v0', which has 8, after row 1"},
        Garbling{kSecondId, 1, "task 1 sent row 1 of 'v0', which has 8, after row 1"},
        Garbling{kSecondId, 8, "task 1 sent row 8 of 'v0', which has 8, after row 1"}}) {
    const auto garble = [&](std::shared_ptr<collective::Communicator> one) {
      if (one->rank() == 0) return one;
      return std::shared_ptr<collective::Communicator>(
          std::make_shared<Garbled>(std::move(one), garbling.place, garbling.number));
    };
    const auto errors = run_tasks(
        2, 1,
        [](const Strategy& strategy, int) {
          const auto rule = optim::make_sgd({});
          const auto targets = make_targets(strategy, {{8, 2}}, *rule);
          const auto exchange = strategy.core()->make_exchange(targets);
          strategy.run([&](ReplicaContext& context) {
            const Tensor ids = at::arange(2).reshape({1, 2}) * 4 + 1;
            bring_all(*exchange, context, {at::sparse_coo_tensor(ids, at::ones({2, 2}), {8, 2})},
                      Arrival::kAtOnce, {0});
            exchange->finish(context, {.rule = *rule, .learning_rate = 1});
          });
        },
        {.wrap = garble});
    for (const auto& error : errors) {
      EXPECT_THAT(message_of<DataLossError>(error), HasSubstr(garbling.error));
    }
  }
}

// One step of each rate, and one more; the rates of a task.
std::vector<std::exception_ptr> run_with_rates(Arrival arrival,
                                               const std::vector<double> (&rates)[2]) {
  return run_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const auto rule = optim::make_sgd({});
    const auto targets = make_targets(strategy, {{4}, {5}}, *rule);
    const auto exchange = strategy.core()->make_exchange(targets);
    std::vector<double> own = rates[task];
    own.push_back(own.back());
    for (const double rate : own) {
      strategy.run([&](ReplicaContext& context) {
        exchange->begin(context, arrival);
        for (size_t i = 2; i-- > 0;) {
          exchange->bring(context, i, at::ones(targets[i].variable.shape()));
        }
        exchange->finish(context, {.rule = *rule, .learning_rate = rate});
      });
    }
    EXPECT_EQ(targets[0].variable.value()[0].item<double>(), 1 - 2 * (0.5 + 0.25 + 0.25));
  });
}

TEST(TaskGradientsErrors, ALearningRateThatOneTaskAloneHasChangedIsAnErrorOnBoth) {
  for (const Arrival arrival : {Arrival::kAtOnce, Arrival::kOneByOne}) {
    for (const std::exception_ptr& error : run_with_rates(arrival, {{0.5, 0.25}, {0.5, 0.25}})) {
      EXPECT_EQ(error, nullptr);
    }
    for (const std::exception_ptr& error : run_with_rates(arrival, {{0.5, 0.25}, {0.5, 0.5}})) {
      EXPECT_THAT(message_of<FailedPreconditionError>(error),
                  AllOf(HasSubstr("task 0 call"), HasSubstr("SGD with learning_rate 0.25")));
    }
    for (const std::exception_ptr& error : run_with_rates(arrival, {{0.5}, {0.25}})) {
      EXPECT_THAT(message_of<FailedPreconditionError>(error),
                  AllOf(HasSubstr("learning_rate 0.5,"), HasSubstr("learning_rate 0.25,")));
    }
  }
}

}  // namespace
}  // namespace cohort::distribute
