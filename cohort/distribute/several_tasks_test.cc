// A strategy of several tasks does what a MirroredStrategy of as many replicas does in one process.
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/collective/testing_members.h"
#include "cohort/core/error.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/distribute/testing_topology.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"
#include "cohort/optim/adam.h"

namespace cohort::distribute {
namespace {

using data::Dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SeveralTasks : public ::testing::TestWithParam<Topology> {
 protected:
  static void run(const std::function<void(const Strategy&, int)>& program) {
    run_all_tasks(GetParam().tasks, GetParam().replicas_each, program);
  }
};
INSTANTIATE_TEST_SUITE_P(Topologies, SeveralTasks,
                         ::testing::Values(Topology{1, 2}, Topology{2, 1}, Topology{2, 2},
                                           Topology{3, 1}));

TEST_P(SeveralTasks, SparseAndUndefinedValuesAreNotGathered) {
  run([](const Strategy& strategy, int) {
    const Tensor sparse = at::ones({2, 2}).to_sparse();
    const auto all = [&](const auto& value) {
      return strategy.run([&](ReplicaContext&) { return value; });
    };
    const Structure structure = tuple(at::ones({1}), sparse);
    const auto expect_refused = [](const auto& call) {
      EXPECT_THAT(thrown<UnimplementedError>(call), HasSubstr("sparse"));
    };
    for (int i = 0; i < 2; ++i) {
      expect_refused([&] { strategy.gather(all(sparse), 0); });
      expect_refused([&] { strategy.gather(sparse, 0); });
      expect_refused([&] { strategy.gather(all(structure), 0); });
      EXPECT_THAT(refused([&] { strategy.gather(Tensor(), 0); }), HasSubstr("undefined"));
      strategy.run([&](ReplicaContext& replica) {
        expect_refused([&] { replica.all_gather(sparse, 0); });
        expect_refused([&] { replica.all_gather(structure, 0); });
        EXPECT_THAT(refused([&] { replica.all_gather(Tensor(), 0); }), HasSubstr("undefined"));
      });
    }
    // Nothing was exchanged: the group goes on.
    EXPECT_EQ(strategy.gather(all(at::ones({1})), 0).numel(), GetParam().replicas());
  });
}

TEST_P(SeveralTasks, ReplicaIdsGoThroughTheTasks) {
  run([](const Strategy& strategy, int task) {
    EXPECT_EQ(strategy.num_replicas_in_sync(), GetParam().replicas());
    const auto ids = strategy.run([](ReplicaContext& context) {
      EXPECT_EQ(context.num_replicas_in_sync(), GetParam().replicas());
      return context.replica_id_in_sync_group();
    });
    ASSERT_EQ(ids.size(), static_cast<size_t>(GetParam().replicas_each));
    EXPECT_EQ(ids.value(0), task * GetParam().replicas_each);
  });
}

TEST_P(SeveralTasks, CollectivesInAStepReachEveryReplicaInTheOrderOfIds) {
  const int n = GetParam().replicas();
  run([&](const Strategy& strategy, int) {
    strategy.run([&](ReplicaContext& context) {
      const int id = context.replica_id_in_sync_group();
      EXPECT_EQ(context.all_reduce(ReduceOp::SUM, number(id + 1)).item<double>(), n * (n + 1) / 2.);
      EXPECT_EQ(context.all_reduce(ReduceOp::MEAN, number(id)).item<double>(), (n - 1) / 2.);
      const Tensor rows = context.all_gather(at::full({id + 1}, id, int64), 0);
      ASSERT_EQ(rows.numel(), n * (n + 1) / 2);
      for (int64_t r = 0, row = 0; r < n; ++r) {
        for (int64_t i = 0; i <= r; ++i, ++row) EXPECT_EQ(rows[row].item<int64_t>(), r);
      }
    });
  });
}

TEST_P(SeveralTasks, GradientsOfCollectivesCrossTasks) {
  const int n = GetParam().replicas();
  run([&](const Strategy& strategy, int) {
    strategy.run([&](ReplicaContext& context) {
      const int id = context.replica_id_in_sync_group();
      GradientTape tape({.persistent = true});
      const Tensor own = at::full({2}, id + 1.0, float64);
      tape.watch(own);
      const Tensor weighted = context.all_gather(own, 0) * (id + 1.0);
      const auto gradient = tape.gradient(weighted.sum(), own);
      EXPECT_EQ(gradient[0].item<double>(), n * (n + 1) / 2.);
    });
  });
}

TEST_P(SeveralTasks, ReduceAndGatherAcrossReplicas) {
  const int n = GetParam().replicas();
  run([&](const Strategy& strategy, int) {
    const auto values = strategy.run([](ReplicaContext& context) {
      return at::full({context.replica_id_in_sync_group() + 1}, context.replica_id_in_sync_group(),
                      float64);
    });
    EXPECT_EQ(strategy.gather(values, 0).numel(), n * (n + 1) / 2);
    EXPECT_EQ(strategy.gather(values, 0)[-1].item<double>(), n - 1);
    EXPECT_EQ(strategy.reduce(ReduceOp::SUM, values, 0).item<double>(),
              (n - 1.) * n * (n + 1) / 3);  // the sum of id * (id + 1)
    // Weighed by the rows that each replica has.
    EXPECT_DOUBLE_EQ(strategy.reduce(ReduceOp::MEAN, values, 0).item<double>(), (n - 1) * 2. / 3);
  });
}

// A conjugate is a view of the memory that it was made of.
TEST_P(SeveralTasks, ConjugatesAreGathered) {
  const int n = GetParam().replicas();
  const Tensor ids = at::arange(n, float32);
  const Tensor expected = at::complex(ids, -(ids + 1));
  const auto conjugate_of = [&](ReplicaContext& context) {
    const int64_t id = context.replica_id_in_sync_group();
    return expected.slice(0, id, id + 1).conj().clone().conj();
  };
  run([&](const Strategy& strategy, int) {
    EXPECT_TRUE(at::equal(strategy.gather(strategy.run(conjugate_of), 0), expected));
    strategy.run([&](ReplicaContext& context) {
      EXPECT_TRUE(at::equal(context.all_gather(conjugate_of(context), 0), expected));
    });
  });
}

TEST_P(SeveralTasks, GatherStrings) {
  const int n = GetParam().replicas();
  run([&](const Strategy& strategy, int) {
    // Of replica 2: [["2a", "22"]].
    const auto values = strategy.run([](ReplicaContext& context) {
      const std::string id = std::to_string(context.replica_id_in_sync_group());
      return StringTensor({id + "a", id == "1" ? "" : id + id}, {1, 2});
    });
    const StringTensor rows = strategy.gather(values, 0);
    EXPECT_EQ(rows.sizes(), (std::vector<int64_t>{n, 2}));
    const StringTensor columns = strategy.gather(values, 1);
    EXPECT_EQ(columns, rows.reshape({1, 2 * n}));  // of one row: the same order
    EXPECT_EQ(rows[0], "0a");
    EXPECT_EQ(rows[1], "00");
    if (n > 1) {
      EXPECT_EQ(rows[2], "1a");
      EXPECT_EQ(rows[3], "");
      const StringTensor by_column = strategy.gather(strategy.run([](ReplicaContext& context) {
        return context.replica_id_in_sync_group() == 0 ? StringTensor({"a", "b"}, {2, 1})
                                                       : StringTensor({"c", "d"}, {2, 1});
      }),
                                                     1);
      EXPECT_EQ(by_column[0], "a");
      EXPECT_EQ(by_column[1], "c");
      EXPECT_EQ(by_column[n], "b");
      EXPECT_EQ(by_column[n + 1], "d");
    }
    EXPECT_THROW(strategy.gather(values, 2), InvalidArgumentError);
    const auto in_step = strategy.run([&](ReplicaContext& context) {
      const std::string id = std::to_string(context.replica_id_in_sync_group());
      const StringTensor own({id + "a", id == "1" ? "" : id + id}, {1, 2});
      const Structure all = context.all_gather(tuple(own, at::ones({1})), 0);
      EXPECT_EQ(all[1].tensor().numel(), n);
      return all[0];
    });
    for (const Structure& all : strategy.experimental_local_results(in_step)) {
      EXPECT_EQ(all.leaf().strings(), rows);
    }
  });
}

TEST(SeveralTasksGather, PlainValuesOfTasks) {
  run_all_tasks(2, 2, [](const Strategy& strategy, int task) {
    const Tensor all = strategy.gather(at::full({task + 1}, task, int64), 0);
    EXPECT_TRUE(at::equal(all, at::tensor({0, 1, 1}, int64)));
  });
}

TEST_P(SeveralTasks, SparseGradientsAreReducedAcrossReplicas) {
  const int n = GetParam().replicas();
  run([&](const Strategy& strategy, int) {
    const auto rows_up_to = [](int id) {  // ones in the rows 0 .. id: another number on each
      return at::sparse_coo_tensor(at::arange(0, id + 1).reshape({1, -1}), at::ones({id + 1, 2}),
                                   {16, 2});
    };
    const auto values = strategy.run(
        [&](ReplicaContext& context) { return rows_up_to(context.replica_id_in_sync_group()); });
    const auto sums = strategy.run(
        [&](ReplicaContext& context, const Tensor& mine) {
          return context.all_reduce(ReduceOp::SUM, mine).to_dense();
        },
        values);
    Tensor expected = at::zeros({16, 2});
    for (int id = 0; id < n; ++id) expected = expected + rows_up_to(id).to_dense();
    for (const Tensor& sum : sums.values()) EXPECT_TRUE(at::equal(sum, expected));
    EXPECT_TRUE(at::equal(strategy.reduce(ReduceOp::SUM, values).to_dense(), expected));
  });
}

TEST_P(SeveralTasks, VariablesStartFromTheFirstTasksValues) {
  run([](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const Variable v(at::full({3}, 5.0 + task), {.name = "v"});
    EXPECT_TRUE(at::equal(v.value(), at::full({3}, 5.0)));
  });
}

TEST_P(SeveralTasks, AssignedValuesAreAggregatedOverAllReplicas) {
  const int n = GetParam().replicas();
  run([&](const Strategy& strategy, int) {
    const auto make = [&](VariableAggregation aggregation,
                          VariableSynchronization synchronization) {
      const auto scope = strategy.scope();
      return Variable(number(-1), {.name = "v",
                                   .trainable = false,
                                   .synchronization = synchronization,
                                   .aggregation = aggregation});
    };
    for (const auto synchronization :
         {VariableSynchronization::ON_WRITE, VariableSynchronization::ON_READ}) {
      const Variable sum = make(VariableAggregation::SUM, synchronization);
      const Variable mean = make(VariableAggregation::MEAN, synchronization);
      const Variable first = make(VariableAggregation::ONLY_FIRST_REPLICA, synchronization);
      strategy.run([&](ReplicaContext& context) {
        const Tensor value = number(context.replica_id_in_sync_group() + 1);
        sum.assign(value);
        mean.assign(value);
        first.assign(value);
      });
      EXPECT_EQ(sum.value().item<double>(), n * (n + 1) / 2.);
      EXPECT_EQ(mean.value().item<double>(), (n + 1) / 2.);
      EXPECT_EQ(first.value().item<double>(), 1);
    }
  });
}

// What every replica brings in a step: dense, of rows, and on some steps nothing.
std::vector<Tensor> gradients_of(int replica, int step) {
  const auto generator = random::Generator::from_seed(100 * step + replica);
  Tensor rows = generator.normal({50, 4});
  rows.slice(0, 0, 40).zero_();
  return {generator.normal({3, 7}), rows.to_sparse(1),
          (step + replica) % 2 == 0 ? generator.normal({5000}) : Tensor(), Tensor()};
}

// Five steps of Adam; the values of replica 0 of each task.
std::vector<std::vector<Tensor>> train(int tasks, int replicas_each) {
  std::vector<std::vector<Tensor>> weights(static_cast<size_t>(tasks));
  run_all_tasks(tasks, replicas_each, [&](const Strategy& strategy, int task) {
    const auto rule = optim::make_adam({});
    std::vector<internal::UpdateTarget> targets;
    {
      const auto scope = strategy.scope();
      for (const Tensor& gradient : gradients_of(0, 0)) {
        const auto shape = gradient.defined() ? gradient.sizes().vec() : std::vector<int64_t>{2};
        targets.push_back({Variable(at::ones(shape)), {}});
        for (int slot = 0; slot < 2; ++slot) targets.back().slots.emplace_back(at::zeros(shape));
      }
    }
    const auto exchange = strategy.core()->make_exchange(targets);
    for (int step = 0; step < 5; ++step) {
      strategy.run([&](ReplicaContext& context) {
        exchange->begin(context, internal::Arrival::kAtOnce);
        const auto gradients = gradients_of(context.replica_id_in_sync_group(), step);
        for (size_t i = 0; i < gradients.size(); ++i) exchange->bring(context, i, gradients[i]);
        exchange->finish(context, {.rule = *rule, .learning_rate = 0.1, .iteration = step});
      });
    }
    for (const auto& target : targets) {
      const auto parts = target.variable.components();
      for (const Tensor& part : parts.values()) EXPECT_TRUE(at::equal(part, parts.value(0)));
      weights[static_cast<size_t>(task)].push_back(parts.value(0));
    }
  });
  return weights;
}

TEST(SeveralTasksTrain, ToTheBitWhatOneTaskOfTwoReplicasDoes) {
  const auto one = train(1, 2);
  const auto two = train(2, 1);
  for (size_t i = 0; i < one[0].size(); ++i) {
    EXPECT_TRUE(at::equal(two[0][i], one[0][i])) << i;
    EXPECT_TRUE(at::equal(two[1][i], one[0][i])) << i;
  }
  EXPECT_TRUE(at::equal(one[0][3], at::ones({2})));  // nobody had a gradient
}

TEST(SeveralTasksTrain, EqualOnAllTasksAndInEveryRun) {
  const auto first = train(2, 2);
  const auto second = train(2, 2);
  const auto one = train(1, 4);
  for (size_t i = 0; i < first[0].size(); ++i) {
    EXPECT_TRUE(at::equal(first[0][i], first[1][i])) << i;
    EXPECT_TRUE(at::equal(first[0][i], second[1][i])) << i;
    // Sums associate differently there.
    EXPECT_TRUE(at::allclose(first[0][i], one[0][i], 1e-4, 1e-4)) << i;
  }
}

TEST(SeveralTasksInput, EachTaskReadsItsShardAndAllEndTogether) {
  std::vector<std::string> read[2];
  run_all_tasks(2, 2, [&](const Strategy& strategy, int task) {
    const auto dataset = strategy.experimental_distribute_dataset(Dataset::range(12).batch(8));
    for (const auto& batch : dataset) read[task].push_back(text(batch));
  });
  // Pieces of a global batch land as p0, p2 | p1, p3; then 4 rows are left.
  ASSERT_EQ(read[0].size(), read[1].size());
  ASSERT_EQ(read[0].size(), 2u);
  EXPECT_EQ(read[0][0] + read[1][0], "[0,1][4,5][2,3][6,7]");
}

// Each task draws other seeds here, as processes do.
TEST(SeveralTasksInput, ShufflesWithoutASeedAreOneOrderThatTasksDivide) {
  std::vector<int64_t> read[2];
  std::string explained[2];
  run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const Dataset shuffled = Dataset::range(24).shuffle(5).shuffle(24);
    const auto dataset = strategy.experimental_distribute_dataset(shuffled.batch(4));
    for (const auto& batch : dataset) {
      const Tensor rows = strategy.experimental_local_results(batch)[0].tensor();
      for (int64_t i = 0; i < rows.size(0); ++i) read[task].push_back(rows[i].item<int64_t>());
    }
    explained[task] = dataset.explain();
    data::Options off;
    off.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::OFF;
    const auto own = strategy.experimental_distribute_dataset(shuffled.batch(4).with_options(off));
    EXPECT_THAT(own.explain(), ::testing::Not(HasSubstr("agreed")));
  });
  std::vector<int64_t> all = read[0];
  all.insert(all.end(), read[1].begin(), read[1].end());
  std::sort(all.begin(), all.end());
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(all.at(static_cast<size_t>(i)), i);
  EXPECT_THAT(explained[1], HasSubstr("shuffle(buffer_size=24, seed=agreed)"));
}

TEST(SeveralTasksInput, ATaskWithoutDataGoesOnWithEmptyBatches) {
  std::vector<std::string> read[2];
  run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const auto dataset =
        strategy.distribute_datasets_from_function([&](const InputContext& context) {
          EXPECT_EQ(context.num_input_pipelines, 2);
          EXPECT_EQ(context.input_pipeline_id, task);
          return Dataset::range(task == 0 ? 2 : 6).batch(2);
        });
    for (const auto& batch : dataset) read[task].push_back(text(batch));
  });
  EXPECT_THAT(read[0], ElementsAre("[0,1]", "[]", "[]"));
  EXPECT_THAT(read[1], ElementsAre("[0,1]", "[2,3]", "[4,5]"));
}

// Replicas are numbered through the tasks.
TEST(SeveralTasksErrors, NameTheReplicasOfTheirTask) {
  const auto merges = run_tasks(2, 2, [](const Strategy& strategy, int task) {
    if (task == 0) return;
    strategy.run([](ReplicaContext& context) {
      const auto count = [](Strategy&, const auto&) { return 1; };
      if (context.local_replica_id() == 0) {
        context.merge_call(count, 1);
      } else {
        context.merge_call(count, 1.5);
      }
    });
  });
  EXPECT_THAT(collective::message_of<FailedPreconditionError>(merges[1]),
              ::testing::ContainsRegex("replica [23] is in a merge_call"));

  std::atomic<bool> release{false}, returned{false};
  const auto late = run_tasks(2, 2, [&](const Strategy& strategy, int task) {
    if (task == 0) return;
    const auto step = [&](ReplicaContext& context) {
      if (context.local_replica_id() == 0) return;
      while (!release) std::this_thread::yield();
      returned = true;
    };
    EXPECT_THAT([&] { strategy.run(RunOptions{.timeout = std::chrono::milliseconds(20)}, step); },
                ::testing::ThrowsMessage<DeadlineExceededError>(::testing::AllOf(
                    HasSubstr("replica 2 ended its step"), HasSubstr("still running: replica 3"))));
    release = true;
    while (!returned) std::this_thread::yield();
  });
  EXPECT_EQ(late[1], nullptr);
}

// The first replica of a task runs on the program's own thread, of which no exception is left.
TEST(SeveralTasksErrors, AThreadThatEndsInAStepIsNamedOnTheOthers) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto step = [&] {
      strategy.run([&](ReplicaContext& context) {
        if (task == 1) pthread_exit(nullptr);
        context.all_reduce(ReduceOp::SUM, number(1));
      });
    };
    task == 0 ? step() : std::thread(step).join();
  });
  ASSERT_NE(errors[0], nullptr);
  const internal::ErrorRecord error = internal::record_error(errors[0]);
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_THAT(error.message, HasSubstr("replica 1: its thread was ended inside the step, by "
                                       "pthread_exit"));
}

}  // namespace
}  // namespace cohort::distribute
