// Tasks of one group that do not do the same: all of them get an error that says what differs.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "cohort/collective/testing_members.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_tasks.h"

namespace cohort::distribute {
namespace {

using collective::message_of;
using data::Dataset;
using ::testing::HasSubstr;

TEST(SeveralTasksGather, AlongAnotherAxisThanOthersIsAnErrorOnAll) {
  run_all_tasks(2, 2, [](const Strategy& strategy, int task) {
    const auto values = strategy.run([] { return at::ones({2, 2}); });
    EXPECT_THAT([&] { strategy.gather(values, task == 0 ? 0 : 1); },
                ::testing::ThrowsMessage<FailedPreconditionError>(::testing::AllOf(
                    HasSubstr("gather along axis 0"), HasSubstr("gather along axis 1"))));
    EXPECT_EQ(strategy.gather(values, 0).size(0), 8);  // the group goes on
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

// Else the next call of the task that has failed would meet this one of the other, and be taken for
// it.
TEST(SeveralTasksReduce, AnErrorBeforeTheOthersAreAskedIsAnErrorOnAll) {
  run_all_tasks(2, 2, [](const Strategy& strategy, int task) {
    const auto values = strategy.run([&] { return at::full({2}, task + 1); });
    const auto told = ::testing::ThrowsMessage<FailedPreconditionError>(
        ::testing::AllOf(HasSubstr("'reduce SUM"), HasSubstr("'reduce that failed'")));
    const auto along = [&](int64_t axis) { return strategy.reduce(ReduceOp::SUM, values, axis); };
    if (task == 0) {
      EXPECT_THAT([&] { along(0); }, told);
    } else {
      EXPECT_THAT([&] { along(7); },
                  ::testing::ThrowsMessage<Error>(::testing::Not(HasSubstr("that failed"))));
    }
    EXPECT_EQ(along(0).item<double>(), 12);  // the group goes on
    EXPECT_THROW(along(7), Error);           // on both
    EXPECT_EQ(along(-1).item<double>(), 12);
    EXPECT_THAT([&] { strategy.reduce(ReduceOp::SUM, task == 0 ? number(1) : Tensor()); },
                ::testing::ThrowsMessage<Error>(HasSubstr("undefined tensor")));
    EXPECT_EQ(strategy.reduce(ReduceOp::SUM, number(task)).item<double>(), 1);
  });
}

TEST(SeveralTasksVariables, AnErrorOfOneInitializerIsAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const Scope scope(strategy.core());
    const auto make = [&](double value, bool fails) {
      return Variable(
          [&]() -> Tensor {
            if (fails) throw DataLossError("the weights are damaged");
            return number(value);
          },
          {.name = "v"});
    };
    EXPECT_THAT([&] { make(1, task == 1); },
                ::testing::ThrowsMessage<Error>(HasSubstr("the weights are damaged")));
    EXPECT_EQ(make(11, false).value().item<double>(), 11);
  });
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
    EXPECT_THAT([&] { Variable(at::ones({2}), {.trainable = task == 0}); },
                ::testing::ThrowsMessage<FailedPreconditionError>(HasSubstr("not trainable")));
    EXPECT_THAT([&] { Variable(at::ones({2}), {.name = task == 0 ? "foo" : "bar"}); },
                ::testing::ThrowsMessage<FailedPreconditionError>(
                    ::testing::AllOf(HasSubstr("foo"), HasSubstr("bar"))));
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
          if (scatters) {
            own.scatter_add({at::ones({1}), at::zeros({1}, int64)});
          } else {
            own.assign_add(at::ones({2}));
          }
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

// Each would take its part of another order.
TEST(SeveralTasksInput, ShufflesThatDifferDivideNoElements) {
  const auto shuffled = [](uint64_t seed) {
    return Dataset::range(12).shuffle(12, {.seed = seed}).batch(4);
  };
  run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    EXPECT_THAT([&] { strategy.experimental_distribute_dataset(shuffled(task == 0 ? 7 : 8)); },
                ::testing::ThrowsMessage<FailedPreconditionError>(::testing::AllOf(
                    HasSubstr("shuffles"), HasSubstr("seed=7"), HasSubstr("seed=8"))));
    EXPECT_EQ(strategy.experimental_distribute_dataset(shuffled(7)).cardinality(), 3);
    data::Options off;
    off.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::OFF;
    strategy.experimental_distribute_dataset(shuffled(task == 0 ? 7 : 8).with_options(off));
  });
}

// Else some rows would be read twice and others never: a pass has an order of its own.
TEST(SeveralTasksInput, StepsOfAnotherPassThanOthersReadAreAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto dataset =
        strategy.experimental_distribute_dataset(Dataset::range(12).shuffle(12).batch(4));
    if (task == 0) dataset.iterator();
    auto iterator = dataset.iterator();
    EXPECT_THAT([&] { iterator.get_next(); },
                ::testing::ThrowsMessage<FailedPreconditionError>(
                    ::testing::AllOf(HasSubstr("step 0 of pass 1 over dataset 1"),
                                     HasSubstr("step 0 of pass 0 over dataset 1"))));
    if (task == 1) dataset.iterator();
    int64_t rows = 0;
    for (const auto& batch : dataset) {
      rows += strategy.experimental_local_results(batch)[0].tensor().size(0);
    }
    EXPECT_EQ(rows, 6);  // the group goes on
  });
}

TEST(SeveralTasksInput, StepsOfAnotherDatasetThanOthersReadAreAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto one = strategy.experimental_distribute_dataset(Dataset::range(8).batch(4));
    const auto other = strategy.experimental_distribute_dataset(Dataset::range(8).batch(4));
    auto iterator = task == 0 ? one.iterator() : other.iterator();
    EXPECT_THAT([&] { iterator.get_next(); },
                ::testing::ThrowsMessage<FailedPreconditionError>(
                    ::testing::AllOf(HasSubstr("dataset 1"), HasSubstr("dataset 2"))));
  });
}

TEST(SeveralTasksInput, APositionThatOneTaskRestoresIsAnErrorOnAll) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int task) {
    const auto dataset = strategy.experimental_distribute_dataset(Dataset::range(24).batch(4));
    auto iterator = dataset.iterator();
    const auto start = iterator.state();
    iterator.get_next();
    if (task == 0) iterator.restore(start);
    // What was read ahead is returned; then the places differ.
    EXPECT_THAT(
        [&] {
          for (int i = 0; i < 4; ++i) iterator.get_next();
        },
        ::testing::Throws<FailedPreconditionError>());
  });
}

// 4 replicas, which 2 workers can divide, but not these.
TEST(SeveralTasksInput, WorkersWithDifferentNumbersOfReplicasDivideNoBatches) {
  const auto program = [](const Strategy& strategy, int) {
    EXPECT_THAT([&] { strategy.experimental_distribute_dataset(Dataset::range(16).batch(8)); },
                ::testing::ThrowsMessage<InvalidArgumentError>(::testing::AllOf(
                    HasSubstr("every input worker must have the same number of replicas"),
                    HasSubstr("has 1 for 1 input worker"), HasSubstr("has 3 for 1 input worker"))));
    // Each reads what is its own.
    const auto dataset = strategy.distribute_datasets_from_function(
        [](const InputContext&) { return Dataset::range(6).batch(2); });
    EXPECT_EQ(dataset.cardinality(), 3);
  };
  run_all_tasks(2, 3, program, {.replicas_of = {1, 3}});
}

TEST(SeveralTasksInput, AnErrorInMakingItOnOneTaskIsAnErrorOnAll) {
  run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const bool fails = task == 1;
    const auto from_function = [&] {
      strategy.distribute_datasets_from_function([&](const InputContext&) -> Dataset {
        if (fails) throw DataLossError("record 7 is damaged");
        return Dataset::range(4).batch(2);
      });
    };
    EXPECT_THAT(from_function,
                ::testing::ThrowsMessage<DataLossError>(HasSubstr(
                    fails ? "record 7" : "the dataset function of task 1 failed: record 7 is")));
    const auto rows = [&](const Tensor& x) { return fails ? x : at::ones({2}); };
    EXPECT_THAT([&] { strategy.experimental_distribute_dataset(Dataset::range(4).map(rows)); },
                ::testing::ThrowsMessage<InvalidArgumentError>(HasSubstr(
                    fails ? "batch" : "experimental_distribute_dataset of task 1 failed: ")));
    EXPECT_EQ(strategy.reduce(ReduceOp::SUM, number(1)).item<double>(), 2);  // the group goes on
  });
}

// A call that one task leaves out would meet that of the next step: of the same name and shape.
TEST(SeveralTasksSteps, WithFewerCallsThanThoseOfOthersAreAnErrorOnAll) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int task) {
    for (int step = 1; step <= 5; ++step) {
      const auto sums = strategy.run([&](ReplicaContext& context) {
        const Tensor loss = number(step);
        return step == 3 && task == 1 ? loss : context.all_reduce(ReduceOp::SUM, loss);
      });
      EXPECT_EQ(sums.value(0).item<double>(), step == 3 ? 3 : 2 * step);
    }
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                ::testing::AllOf(HasSubstr("in step 3; task 1 call"), HasSubstr("in step 4; "),
                                 HasSubstr("task 1 has made fewer calls than task 0 in step 3")));
  }
}

TEST(SeveralTasksSteps, WithFewerCallsAfterThemThanThoseOfOthersAreAnErrorOnAll) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int task) {
    for (int step = 1; step <= 5; ++step) {
      const auto losses = strategy.run([&] { return number(step); });
      if (step != 3 || task != 0) strategy.reduce(ReduceOp::SUM, losses);
    }
  });
  for (const auto& error : errors) {
    EXPECT_THAT(
        message_of<FailedPreconditionError>(error),
        ::testing::AllOf(HasSubstr("after step 3; "), HasSubstr("after step 4; "),
                         HasSubstr("task 0 has made fewer calls than task 1 after step 3")));
  }
}

TEST(SeveralTasksSteps, ThatOneTaskDoesNotRunAreAnErrorOnAll) {
  const auto errors = run_tasks(2, 1, [](const Strategy& strategy, int task) {
    if (task == 0) strategy.run([] { return number(1); });
    strategy.run([](ReplicaContext& context) { context.all_reduce(ReduceOp::SUM, number(1)); });
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                ::testing::AllOf(HasSubstr("in step 2; "), HasSubstr("in step 1; "),
                                 HasSubstr("every task must run as many steps")));
  }
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
