// Variables on the ps tasks of a cluster in this process, over real sockets.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/gradient_exchange.h"
#include "cohort/distribute/known_values.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy_extended.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/optim/sgd.h"
#include "cohort/parameter_server/coordinator/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/variables/cached_reads.h"
#include "cohort/parameter_server/variables/embedding_lookup.h"
#include "cohort/parameter_server/variables/sharded_variable.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using internal::VariableStore;
using partitioners::FixedShardsPartitioner;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor at_rows(std::vector<int64_t> ids) { return at::tensor(ids, int64); }

class ServedVariableTest : public data::FilesTest {
 protected:
  explicit ServedVariableTest(
      ParameterServerStrategyOptions options = {.variable_partitioner = FixedShardsPartitioner(2)})
      : strategy_(cluster_.resolver(), options) {}

  // 0, 1 | 2, 3 ...: one row after another in shards of 3 and 2 rows.
  Variable table(const char* name = "table") const {
    const auto scope = strategy_.scope();
    return Variable(at::arange(10, float32).reshape({5, 2}), {.name = name});
  }
  VariableStore::Load load(int ps) const {
    return strategy_.parameter_server_core()->store().load(ps);
  }
  // What reads since `before` have cost.
  std::pair<int64_t, int64_t> rows_and_values(int ps, const VariableStore::Load& before) const {
    const VariableStore::Load now = load(ps);
    return {now.rows_read - before.rows_read, now.values_read - before.values_read};
  }

  TestingCluster cluster_{1, 2};
  ParameterServerStrategy strategy_;
};
using Counts = std::pair<int64_t, int64_t>;

TEST_F(ServedVariableTest, LiesInNamedShardsOnThePsTasks) {
  const auto scope = strategy_.scope();
  const Variable v(at::arange(10).reshape({5, 2}), {.name = "v", .trainable = false});
  const Variable next(at::zeros({6, 1}), {.name = "next"});
  const ShardedVariable sharded = ShardedVariable::of(v);
  ASSERT_EQ(sharded.variables().size(), 2u);
  EXPECT_TRUE(at::equal(sharded.variables()[0].value(), at::arange(6).reshape({3, 2})));
  EXPECT_TRUE(at::equal(sharded.variables()[1].value(), at::arange(6, 10).reshape({2, 2})));
  EXPECT_EQ(sharded.variables()[1].name(), "v/part_1");
  EXPECT_EQ(sharded.variables()[0].device(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(sharded.variables()[1].device(), "/job:ps/replica:0/task:1/device:CPU:0");
  EXPECT_EQ(next.shards()[0].device(), "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { v.device(); }), HasSubstr("2 shards"));
  const Variable scalar(1., {.name = "scalar"});
  EXPECT_EQ(scalar.shards().size(), 1u);
  EXPECT_EQ(scalar.device(), "/job:ps/replica:0/task:0/device:CPU:0");
}

TEST_F(ServedVariableTest, EachShardIsAVariable) {
  const Variable v = table();
  const std::vector<Variable> shards = v.shards();
  shards[1].assign_add(at::full({2, 2}, 10.f));
  shards[0].assign(at::zeros({3, 2}));
  shards[1].scatter_sub({.values = at::ones({1, 2}), .indices = at_rows({1})});
  EXPECT_TRUE(at::equal(v.value().flatten(),
                        at::tensor({0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 16.f, 17.f, 17.f, 18.f})));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                shards[1].assign(at::zeros({3, 2}));
              }),
              HasSubstr("'table/part_1'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                shards[1].scatter_add({.values = at::ones({1, 2}), .indices = at_rows({2})});
              }),
              HasSubstr("'table/part_1'"));
  EXPECT_THROW(shards[0].tape_source(), FailedPreconditionError);
}

TEST_F(ServedVariableTest, SlicesReadTheRowsThatTheyNeed) {
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

TEST_F(ServedVariableTest, LookupsReadEachRowOnce) {
  const Variable v = table();
  const auto before = load(0), before_1 = load(1);
  const Tensor found = nn::embedding_lookup(v, at_rows({4, 0, 4, 4, 0, 1}));
  EXPECT_TRUE(at::equal(found.select(1, 0), at::tensor({8.f, 0.f, 8.f, 8.f, 0.f, 2.f})));
  EXPECT_EQ(rows_and_values(0, before), Counts(2, 0));
  EXPECT_EQ(rows_and_values(1, before_1), Counts(1, 0));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { nn::embedding_lookup(v, at_rows({5})); }),
              HasSubstr("'table'"));
}

TEST_F(ServedVariableTest, AStepReadsRowsOnceAndSeesWhatItAssigned) {
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

// It may be on its way to the coordinator still. Where nobody has it, steps write in place.
TEST_F(ServedVariableTest, WhatAStepHasReturnedStaysAsItWas) {
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
TEST_F(ServedVariableTest, WhatAStepHandsOverItMayWriteToAfterwards) {
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

// As of a batch whose examples have no words at all.
TEST_F(ServedVariableTest, ALookupOfNoRowsHasAGradientOfNone) {
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

TEST_F(ServedVariableTest, GradientsOfLookupsAreThoseOfTheVariable) {
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

TEST_F(ServedVariableTest, CachedReadsStayUntilTheScopeEnds) {
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

TEST_F(ServedVariableTest, CachedReadsInAStepKeepTheirGradient) {
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

TEST_F(ServedVariableTest, IsKeptBesideAnotherUndivided) {
  const Variable first = table("first");
  const auto scope = strategy_.scope();
  const Variable alone(1., {.name = "alone"});  // ps 0
  const Variable other(1., {.name = "other"});  // ps 1
  const Variable third(1., {.name = "third"});  // ps 0
  {
    const auto beside = strategy_.extended().colocate_vars_with(other);
    const Variable v(at::zeros({5, 2}), {.name = "v"});
    EXPECT_EQ(v.device(), "/job:ps/replica:0/task:1/device:CPU:0");
  }
  {
    const auto beside = strategy_.extended().colocate_vars_with(first.shards()[1]);
    EXPECT_EQ(Variable(1., {.name = "w"}).device(), "/job:ps/replica:0/task:1/device:CPU:0");
  }
  EXPECT_EQ(Variable(1., {.name = "next"}).device(), "/job:ps/replica:0/task:1/device:CPU:0");
}

TEST_F(ServedVariableTest, OfAnotherStrategyIsNoPlace) {
  const Variable outside(1., {.name = "outside"});
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { (void)strategy_.extended().colocate_vars_with(outside); }),
      HasSubstr("'outside'"));
}

TEST_F(ServedVariableTest, KnownInitialValuesAreMadeOnThePsTasks) {
  const auto scope = strategy_.scope();
  for (const auto kind : {KnownValues::Kind::kConstant, KnownValues::Kind::kUniform,
                          KnownValues::Kind::kNormal, KnownValues::Kind::kTruncatedNormal}) {
    for (const DType dtype : {float32, float64, DType(at::kHalf)}) {
      const KnownValues known{
          .kind = kind, .first = 0.5, .second = 2, .seed = 7, .stream = 1, .position = 6};
      const VariableInitializer initializer(
          [](const ShardInfo&) -> Tensor { throw InternalError("it was made here"); }, nullptr,
          [known] { return std::optional(known); });
      const Variable v({.shape = {5, 3}, .dtype = dtype, .options = {.name = "v"}}, initializer);
      EXPECT_TRUE(at::equal(v.value(), internal::make_known_values(known, {5, 3}, 0, dtype)));
    }
  }
}

TEST_F(ServedVariableTest, RestoresIntoAnyNumberOfShards) {
  const Variable v = table();
  const std::string path = train::Checkpoint({{"v", v}}).save(directory + "/ckpt");
  const auto restore = [&](const std::vector<Variable>& parts) {
    const ShardedVariable other(parts);
    train::Checkpoint({{"v", other}}).restore(path).assert_consumed();
    return other.value();
  };
  const auto zeros = [](int64_t rows) { return Variable(at::zeros({rows, 2})); };
  EXPECT_TRUE(at::equal(restore({zeros(5)}), v.value()));
  EXPECT_TRUE(at::equal(restore({zeros(1), zeros(4)}), v.value()));
  EXPECT_TRUE(at::equal(restore({zeros(1), zeros(1), zeros(1), zeros(1), zeros(1)}), v.value()));
  v.assign_add(at::ones({5, 2}));
  train::Checkpoint({{"v", ShardedVariable::of(v)}}).restore(path).assert_consumed();
  EXPECT_TRUE(at::equal(v.value(), at::arange(10, float32).reshape({5, 2})));
}

// The ps tasks have what a step assigns after it; what they were to have meanwhile it would write over.
TEST_F(ServedVariableTest, IsSavedAndRestoredOutsideOfStepsOnly) {
  const Variable v = table();
  const Tensor old = v.value();
  const train::Checkpoint whole({{"v", v}});
  const train::Checkpoint part({{"v", v.shards()[1]}});
  const std::string path = whole.save(directory + "/whole");
  const std::string part_path = part.save(directory + "/part");
  const auto in_merge_call = [&](const std::function<void()>& fn) {
    strategy_.run([&](ReplicaContext& replica) {
      replica.merge_call([&](Strategy&) {
        v.assign_add(at::ones({5, 2}));
        fn();
      });
    });
  };
  const auto refused = [&](const std::function<void()>& fn) {
    return thrown<FailedPreconditionError>([&] { in_merge_call(fn); });
  };
  EXPECT_THAT(refused([&] { whole.save(directory + "/whole"); }),
              HasSubstr("'table' was to be saved in a step"));
  EXPECT_THAT(refused([&] { part.save(directory + "/part"); }),
              HasSubstr("'table/part_1' was to be saved in a step"));
  EXPECT_THAT(refused([&] { whole.restore(path); }),
              HasSubstr("'table' was to be restored in a step"));
  EXPECT_THAT(refused([&] { part.restore(part_path); }),
              HasSubstr("'table/part_1' was to be restored in a step"));
  EXPECT_TRUE(at::equal(v.value(), old));  // nothing of a step that throws counts
  in_merge_call([] {});
  EXPECT_TRUE(at::equal(v.value(), old + 1));
  whole.restore(path).assert_consumed();
  EXPECT_TRUE(at::equal(v.value(), old));
}

// A layer that is built in a step has its value from an earlier restore.
TEST_F(ServedVariableTest, WhatAStepMakesIsRestoredInIt) {
  const auto saved = std::make_shared<train::TrackableList>();
  const Variable v = table();
  saved->add(v.impl());
  const std::string path = train::Checkpoint({{"list", saved}}).save(directory + "/ckpt");
  const auto list = std::make_shared<train::TrackableList>();
  train::Checkpoint({{"list", list}}).restore(path).expect_partial();
  std::optional<Variable> made;
  strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](Strategy&) {
      made.emplace(at::zeros({5, 2}), VariableOptions{.name = "made"});
      list->add(made->impl());
    });
  });
  EXPECT_TRUE(at::equal(made->value(), v.value()));
}

class LeastLoadedTest : public ServedVariableTest {
 protected:
  LeastLoadedTest() : ServedVariableTest({.variable_placement = VariablePlacement::LEAST_LOADED}) {}
};

TEST_F(LeastLoadedTest, PutsVariablesWhereThereIsLeast) {
  const auto scope = strategy_.scope();
  const auto ps_of = [](const std::vector<int64_t>& shape) {
    return Variable(at::zeros(shape), {.name = "v"}).device().substr(18, 6);
  };
  EXPECT_EQ(ps_of({100}), "task:0");
  EXPECT_EQ(ps_of({10}), "task:1");
  EXPECT_EQ(ps_of({10}), "task:1");
  EXPECT_EQ(ps_of({90}), "task:1");
  EXPECT_EQ(ps_of({1}), "task:0");
}

// On the coordinator, outside of steps: as of any other variable.
TEST_F(ServedVariableTest, TapesOutsideOfStepsTakeGradients) {
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

}  // namespace
}  // namespace cohort::distribute
