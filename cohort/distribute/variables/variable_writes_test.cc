// Values that variables take, whatever memory they are in, and those that they refuse before
// anything changes.
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_storage.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using enum VariableAggregation;

constexpr auto kOnRead = VariableSynchronization::ON_READ;

Tensor nine() { return at::arange(9, float32).reshape({3, 3}); }
Tensor truths(bool value) { return at::full({2}, value, at::kBool); }
IndexedSlices truth_at_one() {
  return {.values = truths(true).slice(0, 0, 1), .indices = at::ones({1}, int64)};
}

void expect_takes_its_transpose(const Variable& v) {
  v.assign(v.value().t());
  EXPECT_TRUE(at::equal(v.value(), nine().t()));
  v.assign_add(v.value().t());
  EXPECT_TRUE(at::equal(v.value(), nine() + nine().t()));
  v.assign(nine());
  v.assign_sub(v.value().t());
  EXPECT_TRUE(at::equal(v.value(), nine() - nine().t()));
}

// However the variables are stored.
class VariableWrites : public ::testing::TestWithParam<Storage> {
 protected:
  Variable make(const Tensor& initial, VariableAggregation aggregation,
                VariableSynchronization synchronization = VariableSynchronization::AUTO) {
    const auto scope = strategy.scope();
    return Variable(initial,
                    {.name = "v", .synchronization = synchronization, .aggregation = aggregation});
  }
  const Strategy strategy = with_storage(GetParam(), 2);
};
INSTANTIATE_TEST_SUITE_P(Storage, VariableWrites, ::testing::ValuesIn(kStorages),
                         [](const auto& storage) { return storage_name(storage.param); });

TEST_P(VariableWrites, OfAnotherViewOfItsValue) {
  expect_takes_its_transpose(make(nine(), NONE));
  const Variable own = make(nine(), MEAN, kOnRead);
  strategy.run([&] { expect_takes_its_transpose(own); });
  const Variable merged = make(nine(), ONLY_FIRST_REPLICA);
  strategy.run([&] { merged.assign(merged.value().t()); });
  EXPECT_TRUE(at::equal(merged.value(), nine().t()));
}

TEST(VariableWritesOutsideOfStrategies, OfAnotherViewOfItsValue) {
  expect_takes_its_transpose(Variable(nine()));
}

TEST_P(VariableWrites, TruthsHaveNoSumOverReplicas) {
  for (const auto aggregation : {SUM, MEAN}) {
    const Variable v = make(truths(false), aggregation);
    EXPECT_THAT(refused([&] { strategy.run([&] { v.assign(truths(true)); }); }),
                AllOf(HasSubstr("variable 'v' is bool and has no "), HasSubstr("over replicas")));
    EXPECT_TRUE(at::equal(v.value(), truths(false)));
    v.assign(truths(true));
    EXPECT_TRUE(at::equal(v.value(), truths(true)));
  }
  const Variable first = make(truths(false), ONLY_FIRST_REPLICA);
  strategy.run([&] { first.assign(truths(true)); });
  EXPECT_TRUE(at::equal(first.value(), truths(true)));

  const Variable own = make(truths(false), SUM, kOnRead);
  strategy.run([&] { own.assign(truths(true)); });
  EXPECT_THAT(refused([&] { own.assign(truths(false)); }), HasSubstr("'v' is bool"));
  EXPECT_THAT(refused([&] { own.value(); }), HasSubstr("'v' is bool"));
  strategy.run([&] { EXPECT_TRUE(at::equal(own.value(), truths(true))); });
}

TEST_P(VariableWrites, TruthsTakeNoArithmetic) {
  const Variable v = make(truths(false), NONE);
  EXPECT_THAT(refused([&] { v.assign_add(truths(true)); }),
              HasSubstr("assign_add of variable 'v'"));
  EXPECT_THAT(refused([&] { v.assign_sub(truths(true)); }),
              HasSubstr("assign_sub of variable 'v'"));
  EXPECT_THAT(refused([&] { v.scatter_div(truth_at_one()); }),
              HasSubstr("scatter_div of variable 'v'"));
  v.scatter_update(truth_at_one());
  EXPECT_FALSE(v.value()[0].item<bool>());
  EXPECT_TRUE(v.value()[1].item<bool>());
  const Variable own = make(truths(false), NONE, kOnRead);
  EXPECT_THAT(refused([&] { strategy.run([&] { own.assign_sub(truths(true)); }); }),
              HasSubstr("assign_sub of variable 'v'"));
}

TEST_P(VariableWrites, SparseTensorsAreRefused) {
  EXPECT_THAT(refused([&] { make(at::ones({2}).to_sparse(), NONE); }),
              AllOf(HasSubstr("variable 'v' cannot be made of"), HasSubstr("to_dense()")));
  const Variable v = make(at::zeros({2}), NONE);
  EXPECT_THAT(refused([&] { v.assign(at::ones({2}).to_sparse()); }),
              AllOf(HasSubstr("variable 'v'"), HasSubstr("to_dense()")));
  EXPECT_THAT(refused([&] {
                v.scatter_add({.values = at::ones({2}).to_sparse(), .indices = at::arange(2)});
              }),
              HasSubstr("dense values"));
  EXPECT_TRUE(at::equal(v.value(), at::zeros({2})));
}

// In one process and in several tasks.
class WritesOfTasks : public ::testing::TestWithParam<int> {
 protected:
  static void run(const std::function<void(const Strategy&)>& program) {
    const int tasks = GetParam();
    run_all_tasks(tasks, 2 / tasks, [&](const Strategy& strategy, int) { program(strategy); });
  }
};
INSTANTIATE_TEST_SUITE_P(Tasks, WritesOfTasks, ::testing::Values(1, 2));

TEST_P(WritesOfTasks, TruthsHaveNoSumAndTheGroupGoesOn) {
  run([](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable v(truths(false), {.name = "v", .aggregation = SUM});
    const Variable count(number(0), {.name = "count", .aggregation = SUM});
    strategy.run([&] {
      EXPECT_THAT(refused([&] { v.assign(truths(true)); }),
                  HasSubstr("'v' is bool and has no SUM"));
      count.assign_add(number(1));
    });
    EXPECT_EQ(count.value().item<double>(), 2);
  });
}

TEST_P(WritesOfTasks, ComplexNumbersHaveSumsAndMeans) {
  run([](const Strategy& strategy) {
    const Tensor one = at::complex(at::ones({3}), at::full({3}, 2.f));
    const auto scope = strategy.scope();
    const Variable sum(at::zeros({3}, at::kComplexFloat), {.aggregation = SUM});
    const Variable mean(at::zeros({3}, at::kComplexFloat), {.aggregation = MEAN});
    strategy.run([&](ReplicaContext& replica) {
      const Tensor mine = one * (replica.replica_id_in_sync_group() + 1);
      EXPECT_TRUE(at::equal(replica.all_reduce(ReduceOp::SUM, mine), one * 3));
      EXPECT_TRUE(at::equal(replica.all_reduce(ReduceOp::MEAN, mine), one * 1.5));
      EXPECT_TRUE(at::equal(replica.all_reduce(ReduceOp::SUM, mine.conj()), one.conj() * 3));
      EXPECT_TRUE(at::equal(replica.all_reduce(ReduceOp::SUM, mine.to(at::kComplexDouble)),
                            (one * 3).to(at::kComplexDouble)));
      sum.assign(mine);
      mean.assign(mine);
    });
    EXPECT_TRUE(at::equal(sum.value(), one * 3));
    EXPECT_TRUE(at::equal(mean.value(), one * 1.5));
  });
}

}  // namespace
}  // namespace cohort::distribute
