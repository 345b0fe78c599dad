// A strategy of several tasks does what a MirroredStrategy of as many replicas does in one process.
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/collective/testing_members.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/distributed_dataset.h"
#include "cohort/distribute/gradient_exchange.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/distribute/testing_topology.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"
#include "cohort/optim/adam.h"

namespace cohort::distribute {
namespace {

using collective::message_of;
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
  });
}

TEST(SeveralTasksGather, AlongAnotherAxisThanOthersIsAnErrorOnAll) {
  run_all_tasks(2, 2, [](const Strategy& strategy, int task) {
    const auto values = strategy.run([] { return at::ones({2, 2}); });
    EXPECT_THAT([&] { strategy.gather(values, task == 0 ? 0 : 1); },
                ::testing::ThrowsMessage<FailedPreconditionError>(::testing::AllOf(
                    HasSubstr("gather along axis 0"), HasSubstr("gather along axis 1"))));
    EXPECT_EQ(strategy.gather(values, 0).size(0), 8);  // the group goes on
  });
}

TEST(SeveralTasksGather, PlainValuesOfTasks) {
  run_all_tasks(2, 2, [](const Strategy& strategy, int task) {
    const Tensor all = strategy.gather(at::full({task + 1}, task, int64), 0);
    EXPECT_TRUE(at::equal(all, at::tensor({0, 1, 1}, int64)));
  });
}

TEST(SeveralTasksReduce, ByAnotherOperationThanOthersIsAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto values = strategy.run([] { return at::ones({2}); });
    EXPECT_THAT([&] { strategy.reduce(task == 0 ? ReduceOp::SUM : ReduceOp::MEAN, values); },
                ::testing::ThrowsMessage<FailedPreconditionError>(
                    ::testing::AllOf(HasSubstr("reduce SUM"), HasSubstr("reduce MEAN"))));
    EXPECT_EQ(strategy.reduce(ReduceOp::SUM, values)[0].item<double>(), 2);  // the group goes on
  });
}

TEST(SeveralTasksReduce, AlongAnotherAxisThanOthersIsAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto values = strategy.run([] { return at::ones({2, 2}); });
    EXPECT_THAT([&] { strategy.reduce(ReduceOp::SUM, values, task); },
                ::testing::ThrowsMessage<FailedPreconditionError>(::testing::AllOf(
                    HasSubstr("SUM along axis 0"), HasSubstr("SUM along axis 1"))));
    const auto sum = strategy.reduce(ReduceOp::SUM, values, task == 0 ? 1 : -1);  // the same axis
    EXPECT_EQ(sum[0].item<double>(), 4);
  });
}

// Else what is one thing on one task would be added to another on the other.
TEST(SeveralTasksReduce, StructuresOfAnotherFormThanOthersAreAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto keys_in_order = [&](const char* first, const char* second) {
      return strategy.run([=] { return dict({{first, at::ones({2})}, {second, at::ones({2})}}); });
    };
    const auto own = task == 0 ? keys_in_order("a", "b") : keys_in_order("b", "a");
    const auto refused = ::testing::ThrowsMessage<FailedPreconditionError>(
        ::testing::AllOf(HasSubstr("['a'], ['b']"), HasSubstr("['b'], ['a']")));
    EXPECT_THAT([&] { strategy.reduce(ReduceOp::SUM, own); }, refused);
    EXPECT_THAT([&] { strategy.gather(own, 0); }, refused);
    const Structure sums = strategy.reduce(ReduceOp::SUM, keys_in_order("a", "b"));
    EXPECT_EQ(sums["a"].tensor()[0].item<double>(), 2);
  });
}

TEST(SeveralTasksReduce, StructuresOfAnotherFormInAStepAreAnErrorOnAll) {
  for (const auto& [tasks, replicas_each] : {std::pair(1, 2), std::pair(2, 1)}) {
    const auto errors = run_tasks(tasks, replicas_each, [](const Strategy& strategy, int) {
      const auto reduce = [&](bool same) {
        return strategy.run([&](ReplicaContext& replica) {
          const bool first = same || replica.replica_id_in_sync_group() == 0;
          const Structure own = dict({{first ? "a" : "b", at::ones({2})}, {"c", at::ones({2})}});
          return replica.all_reduce(ReduceOp::SUM, own)["c"].tensor();
        });
      };
      EXPECT_EQ(reduce(true).value(0)[0].item<double>(), 2);
      reduce(false);
    });
    for (const auto& error : errors) {
      EXPECT_THAT(message_of<FailedPreconditionError>(error),
                  ::testing::AllOf(HasSubstr("['a'], ['c']"), HasSubstr("['b'], ['c']")));
    }
  }
}

TEST(SeveralTasksVariables, OfAnotherKindThanThoseOfOthersAreAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const auto make = [](VariableSynchronization synchronization, VariableAggregation aggregation) {
      return Variable(at::ones({2}),
                      {.synchronization = synchronization, .aggregation = aggregation});
    };
    EXPECT_THAT(
        [&] {
          make(VariableSynchronization::ON_WRITE,
               task == 0 ? VariableAggregation::SUM : VariableAggregation::MEAN);
        },
        ::testing::ThrowsMessage<FailedPreconditionError>(::testing::AllOf(
            HasSubstr("ON_WRITE with aggregation SUM"), HasSubstr("with aggregation MEAN"))));
    EXPECT_THROW(
        make(task == 0 ? VariableSynchronization::ON_WRITE : VariableSynchronization::ON_READ,
             VariableAggregation::SUM),
        FailedPreconditionError);
    make(task == 0 ? VariableSynchronization::ON_WRITE : VariableSynchronization::AUTO,  // one kind
         VariableAggregation::SUM);
  });
}

// Else the values of one would be added to those of another.
TEST(SeveralTasksVariables, AnotherOneThanOthersUseIsAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto make = [&](const char* name, VariableSynchronization synchronization,
                          VariableAggregation aggregation) {
      const auto scope = strategy.scope();
      return Variable(at::ones({2}), {.name = name,
                                      .trainable = false,
                                      .synchronization = synchronization,
                                      .aggregation = aggregation});
    };
    const auto refused = [](const char* operation) {
      return ::testing::ThrowsMessage<FailedPreconditionError>(
          ::testing::AllOf(HasSubstr(internal::str(operation, " of variable 'a'")),
                           HasSubstr(internal::str(operation, " of variable 'b'"))));
    };
    for (const auto aggregation : {VariableAggregation::SUM, VariableAggregation::MEAN,
                                   VariableAggregation::ONLY_FIRST_REPLICA}) {
      const Variable a = make("a", VariableSynchronization::ON_READ, aggregation);
      const Variable b = make("b", VariableSynchronization::ON_READ, aggregation);
      EXPECT_THAT([&] { (task == 0 ? a : b).value(); }, refused("read"));
    }
  });
  // In a step an error ends the group.
  for (const auto aggregation : {VariableAggregation::SUM, VariableAggregation::MEAN,
                                 VariableAggregation::ONLY_FIRST_REPLICA}) {
    for (const bool scatters : {false, true}) {
      const auto errors = run_tasks(2, 1, [&](const Strategy& strategy, int task) {
        auto scope = strategy.scope();
        const Variable a(at::ones({2}), {.name = "a", .aggregation = aggregation});
        const Variable b(at::ones({2}), {.name = "b", .aggregation = aggregation});
        scope.close();
        strategy.run([&] {
          const Variable& own = task == 0 ? a : b;
          if (scatters) return own.scatter_add({at::ones({1}), at::zeros({1}, int64)});
          own.assign_add(at::ones({2}));
        });
      });
      const std::string operation = scatters ? "scatter_add" : "assign_add";
      for (const auto& error : errors) {
        EXPECT_THAT(message_of<FailedPreconditionError>(error),
                    ::testing::AllOf(HasSubstr(operation + " of variable 'a'"),
                                     HasSubstr(operation + " of variable 'b'")));
      }
    }
  }
}

TEST(SeveralTasksVariables, WrittenInAnotherWayThanByOthersAreAnErrorOnAll) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int task) {
    auto scope = strategy.scope();
    const Variable v(at::ones({2}), {.name = "v", .aggregation = VariableAggregation::SUM});
    scope.close();
    strategy.run([&] { task == 0 ? v.assign_add(at::ones({2})) : v.assign_sub(at::ones({2})); });
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                ::testing::AllOf(HasSubstr("assign_add of variable 'v'"),
                                 HasSubstr("assign_sub of variable 'v'")));
  }
}

// The parts of a sparse value that travel fit together whatever its shape is.
TEST(SeveralTasksSparse, ValuesUnlikeThoseOfOthersAreAnErrorOnAll) {
  const auto make = [](int64_t rows, int64_t sparse_dim, DType dtype) {
    return at::ones({rows, 2}, at::dtype(dtype)).to_sparse(sparse_dim);
  };
  const Tensor usual = make(4, 1, float32);
  run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const auto expect_refused = [&](const Tensor& first, const Tensor& second, const char* one,
                                    const char* another) {
      EXPECT_THAT(
          [&] { strategy.reduce(ReduceOp::SUM, PerReplica<Tensor>({task == 0 ? first : second})); },
          ::testing::ThrowsMessage<FailedPreconditionError>(
              ::testing::AllOf(HasSubstr(one), HasSubstr(another))));
    };
    expect_refused(usual, make(1000, 1, float32), "float32 [4,2]", "float32 [1000,2]");
    expect_refused(usual, make(4, 1, float64), "float32 [4,2]", "float64 [4,2]");
    expect_refused(usual, make(4, 2, float32), "sparse_dim 1", "sparse_dim 2");
    EXPECT_THAT(
        [&] {
          strategy.reduce(task == 0 ? ReduceOp::SUM : ReduceOp::MEAN, PerReplica<Tensor>({usual}));
        },
        ::testing::ThrowsMessage<FailedPreconditionError>(
            ::testing::AllOf(HasSubstr("reduce SUM"), HasSubstr("reduce MEAN"))));
    const Tensor sum = strategy.reduce(ReduceOp::SUM, PerReplica<Tensor>({usual}));
    EXPECT_TRUE(at::equal(sum.to_dense(), at::full({4, 2}, 2.0)));  // the group goes on
  });
  const auto errors = run_tasks(2, 1, [&](const Strategy& strategy, int task) {
    strategy.run([&](ReplicaContext& context) {
      context.all_reduce(task == 0 ? ReduceOp::SUM : ReduceOp::MEAN, usual);
    });
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                ::testing::AllOf(HasSubstr("all_reduce SUM"), HasSubstr("all_reduce MEAN")));
  }
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

// Of other sizes, batches, elements or policies.
TEST(SeveralTasksInput, DatasetsThatDifferAreAnErrorOnAll) {
  const auto with_policy = [](const Dataset& dataset, data::AutoShardPolicy policy) {
    data::Options options;
    options.experimental_distribute.auto_shard_policy = policy;
    return dataset.with_options(options);
  };
  const Dataset range = Dataset::range(12).batch(4);
  const Dataset tensors = Dataset::from_tensors(at::ones({4, 2}));
  const struct {
    Dataset first, second;
    const char* said[2];
  } kCases[] = {
      {range, Dataset::range(16).batch(4), {"cardinality 3", "cardinality 4"}},
      {range, Dataset::range(12).batch(2), {"cardinality 3", "cardinality 6"}},
      {tensors, Dataset::from_tensors(at::ones({4, 2}, float64)), {"float32", "float64"}},
      {range, with_policy(range, data::AutoShardPolicy::OFF), {"AUTO, card", "::OFF"}},
  };
  run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    for (const auto& one : kCases) {
      EXPECT_THAT(
          [&] { strategy.experimental_distribute_dataset(task == 0 ? one.first : one.second); },
          ::testing::ThrowsMessage<FailedPreconditionError>(
              ::testing::AllOf(HasSubstr("experimental_distribute_dataset"), HasSubstr(one.said[0]),
                               HasSubstr(one.said[1]))));
    }
    const Dataset own = Dataset::range(task == 0 ? 4 : 8).batch(2);
    strategy.experimental_distribute_dataset(with_policy(own, data::AutoShardPolicy::OFF));
  });
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

TEST(SeveralTasksErrors, AFailureOfOneTaskIsNamedOnTheOthers) {
  const auto errors = run_tasks(2, 1, [&](const Strategy& strategy, int task) {
    strategy.run([&](ReplicaContext& context) {
      if (task == 1) throw OutOfRangeError("no such row");
      context.all_reduce(ReduceOp::SUM, number(1));
    });
  });
  EXPECT_EQ(message_of<OutOfRangeError>(errors[1]), "replica 1: no such row");
  EXPECT_THAT(message_of<OutOfRangeError>(errors[0]),
              HasSubstr("task 1 has given up: replica 1: no such row"));
}

TEST(SeveralTasksErrors, OtherCallsAreRefusedOnBoth) {
  const auto errors = run_tasks(2, 1, [&](const Strategy& strategy, int task) {
    strategy.run(
        [&](ReplicaContext& context) { context.all_reduce(ReduceOp::SUM, at::ones({task + 1})); });
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error), HasSubstr("float32 [1]"));
    EXPECT_THAT(message_of<FailedPreconditionError>(error), HasSubstr("float32 [2]"));
  }
}

TEST(SeveralTasksErrors, ATaskThatDoesNotComeIsNamedAtTheDeadline) {
  const auto errors = run_tasks(2, 1, [&](const Strategy& strategy, int task) {
    if (task == 1) return;
    strategy.run(RunOptions{.timeout = std::chrono::milliseconds(50)},
                 [&](ReplicaContext& context) { context.all_reduce(ReduceOp::SUM, number(1)); });
  });
  EXPECT_THAT(message_of<DeadlineExceededError>(errors[0]), HasSubstr("task 1"));
}

}  // namespace
}  // namespace cohort::distribute
