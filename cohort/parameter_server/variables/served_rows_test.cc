// How rows of variables on ps tasks are read: those that are needed, once.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/optim/sgd.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/variables/embedding_lookup.h"
#include "cohort/parameter_server/variables/sampled_loss.h"
#include "cohort/parameter_server/variables/sharded_variable.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using ::testing::HasSubstr;

class ServedRowsTest : public ::testing::Test, protected TwoShards {};
using Counts = std::pair<int64_t, int64_t>;

TEST_F(ServedRowsTest, SlicesReadTheRowsThatTheyNeed) {
  const ShardedVariable s = ShardedVariable::of(table());
  const auto before = load(0), before_1 = load(1);
  EXPECT_TRUE(at::equal(s[Slice{.start = -1, .stop = 2, .step = -1}],
                        at::tensor({8.f, 9.f, 6.f, 7.f}).reshape({2, 2})));
  EXPECT_EQ(rows_and_values(0, before), Counts(0, 0));
  EXPECT_EQ(rows_and_values(1, before_1), Counts(2, 0));
  EXPECT_TRUE(at::equal(s.index({1, ellipsis}), at::tensor({2.f, 3.f})));
  EXPECT_EQ(rows_and_values(0, before), Counts(1, 0));
  EXPECT_TRUE(at::equal(s[Slice{.step = -2}].select(1, 0), at::tensor({8.f, 4.f, 0.f})));
  EXPECT_EQ(rows_and_values(0, before), Counts(3, 0));
  EXPECT_EQ(rows_and_values(1, before_1), Counts(3, 0));
}

TEST_F(ServedRowsTest, LookupsReadEachRowOnce) {
  const Variable v = table();
  const auto before = load(0), before_1 = load(1);
  const Tensor found = nn::embedding_lookup(v, at_rows({4, 0, 4, 4, 0, 1}));
  EXPECT_TRUE(at::equal(found.select(1, 0), at::tensor({8.f, 0.f, 8.f, 8.f, 0.f, 2.f})));
  EXPECT_EQ(rows_and_values(0, before), Counts(2, 0));
  EXPECT_EQ(rows_and_values(1, before_1), Counts(1, 0));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { nn::embedding_lookup(v, at_rows({5})); }),
              HasSubstr("'table'"));
}

TEST_F(ServedRowsTest, ASampledLossReadsTheRowsOfItsClasses) {
  const Variable weights = table();
  const auto before = load(0), before_1 = load(1);
  const random::SampledCandidates drawn = {.sampled_candidates = at_rows({0, 4}),
                                           .true_expected_count = at::full({2, 1}, 1.f),
                                           .sampled_expected_count = at::full({2}, 1.f)};
  const Tensor losses =
      nn::sampled_softmax_loss(weights, at::zeros({5}), at_rows({4, 4}).view({2, 1}),
                               at::full({2, 2}, 0.1f), 2, 5, {.sampled_values = drawn});
  EXPECT_TRUE(at::equal(losses[0], losses[1]));
  EXPECT_EQ(rows_and_values(0, before), Counts(1, 0));
  EXPECT_EQ(rows_and_values(1, before_1), Counts(1, 0));
}

TEST_F(ServedRowsTest, AStepReadsRowsOnceAndSeesWhatItAssigned) {
  const Variable v = table();
  const auto step = strategy_.function("step", [&] {
    strategy_.run([&] {
      const Tensor first = v.sparse_read(at_rows({4, 1}));
      v.scatter_add({.values = at::full({2, 2}, 100.f), .indices = at_rows({1, 2})});
      const Tensor second = v.sparse_read(at_rows({1, 2, 4, 1}));
      const Tensor expected = at::tensor({102.f, 104.f, 8.f, 102.f});
      if (!at::equal(first.select(1, 0), at::tensor({8.f, 2.f})) ||
          !at::equal(second.select(1, 0), expected)) {
        throw InternalError(internal::str("read ", second));
      }
      // And so does a read of all, from here on.
      if (v.value()[2][0].item<float>() != 104) throw InternalError("the whole differs");
      v.shards()[0].assign(at::zeros({3, 2}));
      if (v.sparse_read(at_rows({1})).sum().item<float>() != 0) throw InternalError("no assign");
    });
  });
  const auto rows = strategy_.function("rows", [&] {
    strategy_.run([&] {
      v.sparse_read(at_rows({0, 3}));
      v.scatter_update({.values = at::full({1, 2}, -1.f), .indices = at_rows({3})});
      if (v.shards()[1].value()[0][0].item<float>() != -1) throw InternalError("no update");
    });
  });
  ClusterCoordinator coordinator(strategy_);
  coordinator.schedule(step);
  coordinator.join();
  EXPECT_TRUE(at::equal(v.value().select(1, 0), at::tensor({0.f, 0.f, 0.f, 6.f, 8.f})));
  // That step read all of it; later ones, which do not, do not pull it.
  const auto before = load(0), before_1 = load(1);
  for (int i = 0; i < 3; ++i) {  // one by one: what is asked ahead may be too old when it is needed
    coordinator.schedule(rows);
    coordinator.join();
  }
  EXPECT_EQ(rows_and_values(0, before), Counts(2, 1));  // the first still had all of it
  EXPECT_EQ(rows_and_values(1, before_1), Counts(4, 1));
  EXPECT_EQ(v.value()[3][1].item<float>(), -1);
}

// As of a batch whose examples have no words at all.
TEST_F(ServedRowsTest, ALookupOfNoRowsHasAGradientOfNone) {
  const Variable v = table();
  const auto has_no_rows = [](const Tensor& gradient) {
    return gradient.is_sparse() && gradient._nnz() == 0 &&
           gradient.sizes() == at::IntArrayRef({5, 2});
  };
  const auto gradient_of = [&](GradientTape& tape) {
    const Tensor rows = v.sparse_read(at_rows({}).reshape({3, 0}));
    EXPECT_EQ(rows.sizes(), at::IntArrayRef({3, 0, 2}));
    return tape.gradient((rows * 2).sum(), v);
  };
  GradientTape outside;
  EXPECT_TRUE(has_no_rows(gradient_of(outside)));
  const auto exchange = strategy_.core()->make_exchange({{v, {}}});
  const auto rule = optim::make_sgd();
  const auto before = load(0);
  strategy_.run([&](ReplicaContext& replica) {
    GradientTape tape;
    const Tensor gradient = gradient_of(tape);
    if (!has_no_rows(gradient)) throw InternalError("the gradient has rows");
    exchange->begin(replica, internal::Arrival::kAtOnce);
    exchange->bring(replica, 0, gradient);
    exchange->finish(replica, {.rule = *rule, .learning_rate = 1});
  });
  EXPECT_EQ(rows_and_values(0, before), Counts(0, 0));
  EXPECT_TRUE(at::equal(v.value(), at::arange(10, float32).reshape({5, 2})));
}

TEST_F(ServedRowsTest, GradientsOfLookupsAreThoseOfTheVariable) {
  const Variable v = table();
  const auto step = strategy_.function("step", [&](const Tensor& ids) {
    Tensor result;
    strategy_.run([&] {
      GradientTape tape;
      const Tensor loss = (v.sparse_read(ids) * 2).sum() + v.shards()[1].value().sum();
      const Tensor gradient = tape.gradient(loss, v);
      if (gradient.layout() != at::kSparse) throw InternalError("a dense gradient");
      result = gradient.to_dense();
    });
    return result;
  });
  const auto both = strategy_.function("both", [&](const Tensor& ids) {
    Tensor result;
    strategy_.run([&] {
      GradientTape tape;
      const Tensor loss = (v.sparse_read(ids) * 2).sum() + v.value().sum();
      result = tape.gradient(loss, v);
    });
    return result;
  });
  ClusterCoordinator coordinator(strategy_);
  const auto before = load(0);
  const Tensor found = coordinator.schedule(step, at_rows({0, 4, 0})).fetch().tensor();
  EXPECT_TRUE(at::equal(found.select(1, 1), at::tensor({4.f, 0.f, 0.f, 1.f, 3.f})));
  EXPECT_EQ(rows_and_values(0, before), Counts(1, 0));
  const Tensor with_whole = coordinator.schedule(both, at_rows({0, 4, 0})).fetch().tensor();
  EXPECT_TRUE(at::equal(with_whole.select(1, 1), at::tensor({5.f, 1.f, 1.f, 1.f, 3.f})));
}

}  // namespace
}  // namespace cohort::distribute
