// What steps and tapes read of variables on ps tasks, and what they hand over: each is of its own
// moment.
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/optim/sgd.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/variables/cached_reads.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using internal::str;
using ::testing::HasSubstr;

class ServedStepTest : public ::testing::Test, protected TwoShards {};

// It may be on its way to the coordinator still. Where nobody has it, steps write in place.
TEST_F(ServedStepTest, WhatAStepHasReturnedStaysAsItWas) {
  const Variable v = table();
  const Tensor start = v.value();
  const auto read = [&] { return strategy_.run([&] { return v.value(); }).value(0); };
  const auto add_rows = [&](int64_t row) {
    v.scatter_add({.values = at::ones({1, 2}), .indices = at_rows({row})});
  };
  std::vector<Tensor> results = {read()};
  v.assign_add(at::ones({5, 2}));
  results.push_back(read());  // pulled
  add_rows(4);
  results.push_back(read());  // one shard of it
  results.push_back(strategy_
                        .run([&] {
                          v.assign_add(at::ones({5, 2}));
                          return v.value();
                        })
                        .value(0));
  strategy_.run([&] { add_rows(0); });
  strategy_.run([&] { v.assign(at::zeros({5, 2})); });
  EXPECT_TRUE(at::equal(results[0], start));
  EXPECT_TRUE(at::equal(results[1], start + 1));
  Tensor expected = start + 1;
  expected[4] += 1;
  EXPECT_TRUE(at::equal(results[2], expected));
  EXPECT_TRUE(at::equal(results[3], expected + 1));
  EXPECT_TRUE(at::equal(read(), at::zeros({5, 2})));

  const auto place = [&] {
    return strategy_.run([&] { return reinterpret_cast<int64_t>(v.value().data_ptr()); }).value(0);
  };
  const int64_t before = place();
  v.assign_add(at::ones({5, 2}));
  EXPECT_EQ(place(), before);
  strategy_.run([&] { v.assign_add(at::ones({5, 2})); });
  EXPECT_EQ(place(), before);
}

// It is sent when the step has ended.
TEST_F(ServedStepTest, WhatAStepHandsOverItMayWriteToAfterwards) {
  const Variable v = table("v"), w = table("w"), u = table("u");
  const auto exchange = strategy_.core()->make_exchange({{v, {}}, {w, {}}});
  const auto rule = optim::make_sgd();
  strategy_.run([&](ReplicaContext& replica) {
    const Tensor gradient = at::ones({5, 2}), rows = at_rows({1, 4}), values = at::ones({2, 2});
    const Tensor sparse =
        at::sparse_coo_tensor(rows.unsqueeze(0), values, {5, 2})._coalesced_(true);
    exchange->begin(replica, internal::Arrival::kAtOnce);
    exchange->bring(replica, 0, gradient);
    exchange->bring(replica, 1, sparse);
    exchange->finish(replica, {.rule = *rule, .learning_rate = 1});
    const Tensor other_rows = at_rows({0, 3}), other_values = at::ones({2, 2});
    u.scatter_sub({.values = other_values, .indices = other_rows});
    for (const Tensor& written : {gradient, rows, values, other_rows, other_values}) {
      written.zero_();
    }
  });
  const Tensor start = at::arange(10, float32).reshape({5, 2});
  EXPECT_TRUE(at::equal(v.value(), start - 1));
  EXPECT_TRUE(at::equal(w.value(), start - at::tensor({0.f, 1.f, 0.f, 0.f, 1.f}).unsqueeze(1)));
  EXPECT_TRUE(at::equal(u.value(), start - at::tensor({1.f, 0.f, 0.f, 1.f, 0.f}).unsqueeze(1)));
}

TEST_F(ServedStepTest, CachedReadsStayUntilTheScopeEnds) {
  Variable v, w;
  {
    const auto scope = strategy_.scope();
    v = Variable(1., {.name = "v"});
    w = Variable(2., {.name = "w"});
  }
  const Variable rows = table();
  {
    const auto cached = cache_variable_reads();
    EXPECT_EQ(v.value().item<float>(), 1);
    v.assign(5.);
    EXPECT_EQ(v.value().item<float>(), 1);
    EXPECT_EQ((w * 3.).item<float>(), 6);
    w.assign(3.);
    EXPECT_EQ((w * 3.).item<float>(), 6);
    EXPECT_EQ(rows.sparse_read(at_rows({1})).sum().item<float>(), 5);
    rows.assign(at::zeros({5, 2}));
    EXPECT_EQ(rows.sparse_read(at_rows({1, 2})).sum().item<float>(), 5);
    EXPECT_THAT(thrown<InvalidArgumentError>([] { const auto nested = cache_variable_reads(); }),
                HasSubstr("do not nest"));
  }
  EXPECT_EQ(v.value().item<float>(), 5);
  EXPECT_EQ(w.value().item<float>(), 3);
  EXPECT_EQ(rows.sparse_read(at_rows({1})).sum().item<float>(), 0);
}

TEST_F(ServedStepTest, CachedReadsInAStepKeepTheirGradient) {
  const Variable v = [&] {
    const auto scope = strategy_.scope();
    return Variable(2., {.name = "v"});
  }();
  const auto step = strategy_.function("step", [&] {
    Tensor result;
    strategy_.run([&] {
      const auto cached = cache_variable_reads();
      GradientTape tape;
      const Tensor before = v.value() * 3;
      v.assign(7.);
      const Tensor after = v.value() * v.value();
      result = tape.gradient(before + after, v) * 100 + after;
    });
    return result;
  });
  ClusterCoordinator coordinator(strategy_);
  EXPECT_EQ(coordinator.schedule(step).fetch().tensor().item<float>(), 704);
  EXPECT_EQ(v.value().item<float>(), 7);
}

// On the coordinator, outside of steps: as of any other variable.
TEST_F(ServedStepTest, TapesOutsideOfStepsTakeGradients) {
  const Variable v = table(), other = table("other");
  const auto fixed = [&] {
    const auto scope = strategy_.scope();
    return Variable(at::ones({2}), {.name = "fixed", .trainable = false});
  }();
  for (const bool is_cached : {false, true}) {
    std::optional<CachedVariableReads> cached;
    if (is_cached) cached.emplace();
    GradientTape tape;
    const Tensor loss = (v.value() * v.value()).sum() + (fixed.value() * v.value()).sum();
    const auto gradients = tape.gradient(loss, {v, other, fixed});
    EXPECT_TRUE(at::equal(gradients[0], 2 * v.value().detach() + 1));
    EXPECT_FALSE(gradients[1].defined());
    EXPECT_FALSE(gradients[2].defined());
  }
  GradientTape tape;
  const Tensor rows = v.sparse_read(at_rows({4, 0, 4}));
  const Tensor gradient = tape.gradient((rows * rows).sum(), v);
  ASSERT_TRUE(gradient.is_sparse());
  EXPECT_TRUE(at::equal(gradient._indices()[0], at_rows({0, 4})));
  EXPECT_TRUE(
      at::equal(gradient._values(), at::tensor({0., 2., 32., 36.}, float32).reshape({2, 2})));
  GradientTape outer({.persistent = true});
  const Tensor y = v.value().pow(3).sum();
  const Tensor first = outer.gradient(y, v);
  EXPECT_TRUE(at::equal(outer.gradient(first.sum(), v), 6 * v.value().detach()));
  EXPECT_EQ(load(0).operations, 0);
}

// libtorch 1.13 forgets of what shape their rows would be when it multiplies them, as clipping and
// users do.
TEST_F(ServedStepTest, AGradientWithoutRowsMayBeScaled) {
  const Variable v = table(), none = table("none");
  const auto exchange = strategy_.core()->make_exchange({{v, {}}, {none, {}}});
  const auto rule = optim::make_sgd();
  for (const double factor : {1., 0.5}) {
    const auto step = strategy_.function(str("step by ", factor), [&] {
      strategy_.run([&](ReplicaContext& replica) {
        GradientTape tape;
        const Tensor loss = v.value().sum() + none.sparse_read(at_rows({})).sum();
        const auto gradients = tape.gradient(loss, {v, none});
        exchange->begin(replica, internal::Arrival::kAtOnce);
        for (size_t i = 0; i < 2; ++i) {
          exchange->bring(replica, i, factor == 1 ? gradients[i] : gradients[i] * factor);
        }
        exchange->finish(replica, {.rule = *rule, .learning_rate = 1, .global_clipnorm = 0.1});
      });
    });
    const ClusterCoordinator coordinator(strategy_);
    coordinator.schedule(step).fetch();
  }
  const Tensor start = at::arange(10, float32).reshape({5, 2});
  EXPECT_TRUE(at::allclose(v.value(), start - 2 * 0.1 / std::sqrt(10.)));
  EXPECT_TRUE(at::equal(none.value(), start));
}

}  // namespace
}  // namespace cohort::distribute
