// How gradients go between tasks: the same bits however they arrive and travel, packs that leave
// during the backward pass, rows alone where they are sparse, and errors that reach every task.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <numeric>

#include "cohort/collective/testing_forwarding_communicator.h"
#include "cohort/collective/testing_members.h"
#include "cohort/distribute/gradient_exchange.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/distribute/testing_topology.h"
#include "cohort/ops/random.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/sgd.h"

namespace cohort::distribute {
namespace {

using collective::CallOptions;
using collective::Communicator;
using collective::message_of;
using internal::Arrival;
using internal::GradientExchange;
using internal::UpdateTarget;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Gradients = std::function<std::vector<Tensor>(int replica, int step)>;
using Order = std::function<std::vector<size_t>(int task, size_t count)>;

std::vector<size_t> forward(int, size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}
std::vector<size_t> backward(int, size_t count) {
  std::vector<size_t> order = forward(0, count);
  std::reverse(order.begin(), order.end());
  return order;
}
std::vector<size_t> another_on_each_task(int task, size_t count) {
  std::vector<size_t> order = backward(0, count);
  std::rotate(order.begin(), order.begin() + task % static_cast<int>(count), order.end());
  return order;
}

// Targets under the strategy, with the rule's slots.
std::vector<UpdateTarget> make_targets(const Strategy& strategy,
                                       const std::vector<std::vector<int64_t>>& shapes,
                                       const optim::UpdateRule& rule, DType dtype = float32,
                                       const std::string& prefix = "v") {
  const auto scope = strategy.scope();
  std::vector<UpdateTarget> targets;
  for (const auto& shape : shapes) {
    const Tensor ones = at::ones(shape, dtype);
    targets.push_back({Variable(ones, {.name = internal::str(prefix, targets.size())}), {}});
    for (const auto& slot : rule.slots()) {
      targets.back().slots.emplace_back(at::full_like(ones, slot.initial_value));
    }
  }
  return targets;
}

// Passes the gradients in this order.
void bring_all(GradientExchange& exchange, ReplicaContext& context,
               const std::vector<Tensor>& gradients, Arrival arrival,
               const std::vector<size_t>& order) {
  exchange.begin(context, arrival);
  for (const size_t i : order) exchange.bring(context, i, gradients[i]);
}

struct Training {
  Topology topology{2, 1};
  std::vector<std::vector<int64_t>> shapes;
  Gradients gradients;
  Arrival arrival = Arrival::kAtOnce;
  Order order = forward;
  int64_t bytes_per_pack = 0;
  double global_clipnorm = 0;
  bool skip_not_finite = false;
  DType dtype = float32;
};

// Six steps of Adam: the final weights and slots of each task, and at the end of each task's the
// norms and which steps updated.
std::vector<std::vector<Tensor>> train(const Training& training) {
  std::vector<std::vector<Tensor>> results(static_cast<size_t>(training.topology.tasks));
  run_all_tasks(
      training.topology.tasks, training.topology.replicas_each,
      [&](const Strategy& strategy, int task) {
        const auto rule = optim::make_adam({});
        const auto targets = make_targets(strategy, training.shapes, *rule, training.dtype);
        const auto exchange = strategy.core()->make_exchange(targets);
        Tensor outcome = at::zeros({6, 2}, float64);
        for (int step = 0; step < 6; ++step) {
          strategy.run([&](ReplicaContext& context) {
            const auto gradients = training.gradients(context.replica_id_in_sync_group(), step);
            bring_all(*exchange, context, gradients, training.arrival,
                      training.order(task, gradients.size()));
            const auto result =
                exchange->finish(context, {.rule = *rule,
                                           .learning_rate = 0.1,
                                           .iteration = step,
                                           .global_clipnorm = training.global_clipnorm,
                                           .skip_not_finite = training.skip_not_finite});
            if (context.local_replica_id() != 0) return;
            outcome[step][0] = std::isfinite(result.global_norm) ? result.global_norm : -1;
            outcome[step][1] = result.updated ? 1 : 0;
          });
        }
        auto& mine = results[static_cast<size_t>(task)];
        for (const UpdateTarget& target : targets) {
          const auto parts = target.variable.components();
          for (const Tensor& part : parts.values()) EXPECT_TRUE(at::equal(part, parts.value(0)));
          mine.push_back(parts.value(0).clone());
          for (const Variable& slot : target.slots) mine.push_back(slot.value().clone());
        }
        mine.push_back(outcome);
      },
      {.bytes_per_pack = training.bytes_per_pack});
  return results;
}

// Equal to the bit on every task of both.
void expect_same(const std::vector<std::vector<Tensor>>& all,
                 const std::vector<std::vector<Tensor>>& expected) {
  for (const auto& task : all) {
    ASSERT_EQ(task.size(), expected[0].size());
    for (size_t i = 0; i < task.size(); ++i) {
      EXPECT_TRUE(at::equal(task[i], expected[0][i])) << i;
    }
  }
}

const std::vector<std::vector<int64_t>> kShapes{{3, 7}, {50, 4}, {5000}, {2}, {1}, {129}, {60, 3}};

// Dense, sparse on all, now and then missing, never there, changing from sparse to dense and back,
// sparse on some replicas only.
std::vector<Tensor> many_kinds(int replica, int step) {
  const auto generator = random::RandomGenerator::from_seed(100 * step + replica);
  const auto rows_of = [&](int64_t rows, int64_t width) {
    Tensor dense = generator.normal({rows, width});
    dense.slice(0, replica, rows - 7 + replica).zero_();
    return dense;
  };
  const Tensor changing = rows_of(60, 3);
  return {generator.normal({3, 7}),
          rows_of(50, 4).to_sparse(1),
          (step + replica) % 2 == 0 ? generator.normal({5000}) : Tensor(),
          Tensor(),
          step < 3 ? Tensor() : generator.normal({1}),
          generator.normal({129}),
          step % 3 == 0 || (step == 2 && replica == 0) ? changing.to_sparse(1) : changing};
}

class TaskGradients : public ::testing::TestWithParam<Topology> {};
INSTANTIATE_TEST_SUITE_P(Topologies, TaskGradients,
                         ::testing::Values(Topology{1, 2}, Topology{2, 1}, Topology{2, 2},
                                           Topology{3, 1}));

TEST_P(TaskGradients, GiveTheSameBitsHoweverTheyArriveAndArePacked) {
  const Training training{.topology = GetParam(), .shapes = kShapes, .gradients = many_kinds};
  const auto expected = train(training);
  expect_same(expected, expected);  // all tasks alike
  for (const Order& order : {Order(forward), Order(backward), Order(another_on_each_task)}) {
    for (const int64_t bytes_per_pack : {int64_t{1}, int64_t{600}, int64_t{0}}) {
      Training other = training;
      other.arrival = Arrival::kOneByOne;
      other.order = order;
      other.bytes_per_pack = bytes_per_pack;
      expect_same(train(other), expected);
    }
  }
}

TEST(TaskGradientsBits, TwoTasksDoWhatTwoReplicasOfOneTaskDo) {
  for (const DType dtype : {float32, float64}) {
    for (const double clipnorm : {0.0, 0.5}) {
      Training training{.shapes = kShapes,
                        .gradients =
                            [&](int replica, int step) {
                              auto gradients = many_kinds(replica, step);
                              for (Tensor& one : gradients) {
                                if (one.defined()) one = one.to(dtype);
                              }
                              return gradients;
                            },
                        .arrival = Arrival::kOneByOne,
                        .order = backward,
                        .bytes_per_pack = 600,
                        .global_clipnorm = clipnorm,
                        .dtype = dtype};
      training.topology = {1, 2};
      const auto one = train(training);
      training.topology = {2, 1};
      expect_same(train(training), one);
    }
  }
}

// Whatever travels: rows alone give what the same numbers give as dense ones.
TEST(TaskGradientsBits, RowsGiveWhatDenseGradientsDo) {
  for (const Topology topology : {Topology{2, 1}, Topology{2, 2}, Topology{3, 1}}) {
    const auto gradients = [](bool sparse) {
      return [sparse](int replica, int step) -> std::vector<Tensor> {
        const auto generator = random::RandomGenerator::from_seed(10 * step + replica);
        const std::vector<int64_t> rows_of_replica{3, 17, replica, 3, 40 - replica};
        const Tensor ids = at::tensor(rows_of_replica, int64).reshape({1, 5});
        const Tensor rows = at::sparse_coo_tensor(ids, generator.normal({5, 6}), {41, 6});
        return {sparse ? rows : rows.to_dense()};
      };
    };
    Training training{.topology = topology, .shapes = {{41, 6}}, .gradients = gradients(true)};
    const auto of_rows = train(training);
    training.gradients = gradients(false);
    expect_same(of_rows, train(training));
  }
}

// Row 41: one replica's number decides for all.
TEST_P(TaskGradients, AStepThatIsNotFiniteAnywhereIsLeftOutEverywhere) {
  const int last = GetParam().replicas() - 1;
  for (const bool sparse : {false, true}) {
    Training training{.topology = GetParam(),
                      .shapes = {{9, 2}, {4}},
                      .gradients = [&](int replica, int step) -> std::vector<Tensor> {
                        const bool odd = replica == last && step % 2 == 1;
                        const Tensor rows = at::full({9, 2}, odd ? std::nan("") : 1.0, float32);
                        return {sparse ? rows.to_sparse(1) : rows, at::ones({4})};
                      },
                      .arrival = Arrival::kOneByOne,
                      .skip_not_finite = true};
    const auto results = train(training);
    expect_same(results, results);
    for (const auto& task : results) {
      for (int step = 0; step < 6; ++step) {
        EXPECT_EQ(task.back()[step][1].item<double>(), step % 2 == 0 ? 1 : 0) << step;
      }
      EXPECT_TRUE(task[0].isfinite().all().item<bool>());
    }
  }
}

// What goes over a communicator, and who waits for it.
class Watched final : public collective::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  collective::Buffer buffer(int64_t bytes) override {
    ++buffers;
    return ForwardingCommunicator::buffer(bytes);
  }
  // Waits until a call of this name has begun.
  bool saw(const std::string& name) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      return std::any_of(names_.begin(), names_.end(),
                         [&](const std::string& one) { return one.starts_with(name); });
    });
  }
  void forget() {
    std::lock_guard lock(mutex_);
    names_.clear();
    bytes = 0;
  }

  std::atomic<int64_t> bytes{0};
  std::atomic<int> buffers{0};
  // Calls whose names begin with this fail. Set before the step.
  std::string broken;

 private:
  void before(const CallOptions& options, int64_t size) override {
    {
      std::lock_guard lock(mutex_);
      names_.emplace_back(options.name);
    }
    changed_.notify_all();
    bytes += size;
    if (!broken.empty() && options.name.starts_with(broken)) {
      throw UnavailableError("its network card was pulled out");
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> names_;  // guarded by mutex_
};

// Watches the communicators of all tasks.
struct Watch {
  std::vector<std::shared_ptr<Watched>> of_task;
  TasksOptions options(int64_t bytes_per_pack = 1) {
    return {.bytes_per_pack = bytes_per_pack, .wrap = [this](std::shared_ptr<Communicator> inner) {
              of_task.push_back(std::make_shared<Watched>(std::move(inner)));
              return of_task.back();
            }};
  }
};

TEST_P(TaskGradients, PacksLeaveWhileTheBackwardPassStillRuns) {
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
              // The first step learns what there is; the last pack leaves with finish.
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

TEST_P(TaskGradients, CollectivesOfTheStepGoBetweenThePacks) {
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
      {.bytes_per_pack = 1});
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
        step();
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

// Three steps of three variables in packs of one; `disturb` is called before each gradient is
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

TEST(TaskGradientsErrors, APeerThatIsLostInTheMiddleOfAPackEndsTheStepOfAll) {
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

TEST(TaskGradientsErrors, ABackwardPassEndsWithTheFirstGradientAfterAPackHasFailed) {
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

}  // namespace
}  // namespace cohort::distribute
