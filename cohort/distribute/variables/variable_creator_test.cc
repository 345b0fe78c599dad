#include "cohort/distribute/variables/variable_creator.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/variables/variable_creation.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Puts its name ahead of those of variables.
VariableCreator named(const std::string& name) {
  return [name](const NextVariableCreator& next, VariableCreation creation) {
    creation.options.name = name + "/" + creation.options.name;
    return next(std::move(creation));
  };
}

std::string name_of_new(const char* name = "v") { return Variable(1., {.name = name}).name(); }

TEST(VariableCreatorScope, TheInnermostComesFirst) {
  EXPECT_EQ(name_of_new(), "v");
  auto outer = variable_creator_scope(named("outer"));
  {
    auto inner = variable_creator_scope(named("inner"));
    EXPECT_EQ(name_of_new(), "outer/inner/v");
  }
  EXPECT_EQ(name_of_new(), "outer/v");
  outer.close();
  outer.close();  // closing twice does nothing
  EXPECT_EQ(name_of_new(), "v");
}

TEST(VariableCreatorScope, ACreatorSeesAndChangesWhatIsAskedFor) {
  std::vector<VariableCreation> seen;
  auto scope =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        seen.push_back(creation);
        creation.options = {.name = "changed",
                            .trainable = false,
                            .dtype = float64,
                            .synchronization = VariableSynchronization::ON_READ,
                            .aggregation = VariableAggregation::SUM};
        return next(std::move(creation));
      });
  const auto check = [&](const Variable& v) {
    EXPECT_EQ(v.name(), "changed");
    EXPECT_FALSE(v.trainable());
    EXPECT_EQ(v.dtype(), float64);
    EXPECT_EQ(v.synchronization(), VariableSynchronization::ON_READ);
    EXPECT_EQ(v.aggregation(), VariableAggregation::SUM);
    EXPECT_TRUE(at::equal(v.value(), at::full({2}, 3., float64)));
  };
  const Tensor threes = at::full({2}, 3., float32);
  check(Variable(threes, {.name = "tensor"}));
  check(Variable([&] { return threes; }, {.name = "function"}));
  check(Variable({.shape = {2}, .options = {.name = "spec"}},
                 [&](const ShardInfo&) { return threes; }));
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].options.name, "tensor");
  EXPECT_EQ(seen[0].options.dtype, float32);
  EXPECT_THAT(*seen[0].shape, ElementsAre(2));
  EXPECT_FALSE(seen[1].shape.has_value());
  EXPECT_FALSE(seen[1].options.dtype.has_value());
  EXPECT_THAT(*seen[2].shape, ElementsAre(2));
  for (const VariableCreation& one : seen) EXPECT_TRUE(at::equal(one.initial_value(), threes));
}

TEST(VariableCreatorScope, ACreatorChangesTheInitialValue) {
  const MirroredStrategy strategy = mirrored(2);
  const auto strategy_scope = strategy.scope();
  auto twice =
      variable_creator_scope([](const NextVariableCreator& next, VariableCreation creation) {
        creation.set_initial_value(2 * creation.initial_value());
        return next(std::move(creation));
      });
  const Variable of_tensor(at::ones({2}));
  const Variable of_function([] { return at::ones({2}); });
  const Variable of_spec({.shape = {2}},
                         [](const ShardInfo& shard) { return at::ones(shard.shape); });
  for (const Variable& v : {of_tensor, of_function, of_spec}) {
    const PerReplica<Tensor> all = v.components();
    for (const Tensor& one : all.values()) {
      EXPECT_TRUE(at::equal(one, at::full({2}, 2., float32)));
    }
  }
  auto reshaped =
      variable_creator_scope([](const NextVariableCreator& next, VariableCreation creation) {
        creation.set_initial_value(at::zeros({3, 1}, float64));
        return next(std::move(creation));
      });
  const Variable other(at::ones({2}));
  EXPECT_THAT(other.shape(), ElementsAre(3, 1));
  EXPECT_EQ(other.dtype(), float32);  // which was asked for
}

TEST(VariableCreatorScope, ACreatorMayGiveAnotherVariable) {
  std::optional<Variable> shared;
  auto scope =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        if (!shared) shared = next(std::move(creation));
        return *shared;
      });
  bool ran = false;
  const Variable first(1., {.name = "first"});
  const Variable second([&] {
    ran = true;
    return number(2.);
  });
  EXPECT_TRUE(first == second);
  EXPECT_FALSE(ran);
}

TEST(VariableCreatorScope, WhatACreatorMakesItselfGoesToThoseAround) {
  std::vector<std::string> outside, inside;
  auto outer =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        outside.push_back(creation.options.name);
        return next(std::move(creation));
      });
  auto inner = variable_creator_scope([&](const NextVariableCreator&, VariableCreation creation) {
    inside.push_back(creation.options.name);
    return Variable(1., {.name = "own"});
  });
  EXPECT_EQ(name_of_new(), "own");
  EXPECT_THAT(inside, ElementsAre("v"));
  EXPECT_THAT(outside, ElementsAre("own"));
}

TEST(VariableCreatorScope, CoversItsThreadOnly) {
  auto scope = variable_creator_scope(named("here"));
  std::string there;
  std::thread([&] { there = name_of_new(); }).join();
  EXPECT_EQ(there, "v");
}

TEST(VariableCreatorScope, IsNoContextOfAStrategy) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = variable_creator_scope(named("outer"));
  EXPECT_FALSE(has_strategy());
  EXPECT_NE(get_replica_context(), nullptr);
  experimental_set_strategy(&strategy);
  EXPECT_TRUE(has_strategy());
  EXPECT_TRUE(in_cross_replica_context());
  EXPECT_EQ(Variable(1.).components().size(), 2U);
  experimental_set_strategy(nullptr);
  const auto strategy_scope = strategy.scope();
  auto inner = variable_creator_scope(named("inner"));
  EXPECT_TRUE(get_strategy() == strategy);
  EXPECT_TRUE(in_cross_replica_context());
  const Variable v(1., {.name = "v"});
  EXPECT_EQ(v.name(), "outer/inner/v");
  EXPECT_EQ(v.components().size(), 2U);
}

// In TensorFlow, too, replicas have the creators of the thread that calls run.
TEST(VariableCreatorScope, ReachesTheReplicasOfAStep) {
  const MirroredStrategy strategy = mirrored(3);
  std::atomic<int> calls = 0;
  auto outer =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        ++calls;
        EXPECT_TRUE(in_cross_replica_context());
        creation.options.name = "outer/" + creation.options.name;
        return next(std::move(creation));
      });
  for (int k = 0; k < 3; ++k) {  // whichever replica comes last
    const auto names = strategy.run([&](ReplicaContext& context) {
      const Variable v(1., {.name = "v"});
      const std::string merged =
          context.merge_call([](Strategy&) { return name_of_new("merged"); });
      return v.name() + " " + merged;
    });
    EXPECT_EQ(calls, 2 * (k + 1));
    for (const std::string& name : names.values()) EXPECT_EQ(name, "outer/v outer/merged");
  }
}

TEST(VariableCreatorScope, OfAStepIsCalledInEachReplica) {
  const MirroredStrategy strategy = mirrored(2);
  auto outer = variable_creator_scope(named("outer"));
  std::atomic<int> calls = 0;
  const auto names = strategy.run([&](ReplicaContext& context) {
    const int id = context.replica_id_in_sync_group();
    auto inner =
        variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
          ++calls;
          EXPECT_EQ(get_replica_context(), &context);
          creation.options.name = "inner/" + creation.options.name;
          creation.set_initial_value(number(id + 1));
          return next(std::move(creation));
        });
    const Variable v(7.);
    const std::string merged = context.merge_call([](Strategy&) { return name_of_new("merged"); });
    return internal::str(v.name(), " of ", v.value().item<double>(), ", ", merged);
  });
  EXPECT_EQ(calls, 2);
  for (const std::string& name : names.values()) {
    EXPECT_EQ(name, "outer/inner/Variable of 1, outer/merged");
  }
  EXPECT_EQ(name_of_new(), "outer/v");
}

TEST(VariableCreatorScope, LeftOpenInAStepEndsWithIt) {
  const MirroredStrategy strategy = mirrored(2);
  std::mutex mutex;
  std::vector<std::unique_ptr<VariableCreatorScope>> scopes;
  strategy.run([&] {
    auto scope = std::make_unique<VariableCreatorScope>(named("step"));
    const std::lock_guard lock(mutex);
    scopes.push_back(std::move(scope));
  });
  EXPECT_EQ(name_of_new(), "v");
  const auto names = strategy.run([] { return name_of_new(); });
  for (const std::string& name : names.values()) EXPECT_EQ(name, "v");
  for (const auto& scope : scopes) {
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { scope->close(); }),
                HasSubstr("after the end of the step"));
  }
}

TEST(VariableCreatorScope, AnErrorOfACreatorLeavesNothing) {
  auto outer = variable_creator_scope(named("outer"));
  bool fails = true;
  auto scope =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        const Variable made = next(std::move(creation));
        if (fails) throw NotFoundError("no such name");
        return made;
      });
  EXPECT_THAT(thrown<NotFoundError>([] { Variable(1., {.name = "v"}); }),
              HasSubstr("no such name"));
  fails = false;
  EXPECT_EQ(name_of_new(), "outer/v");

  const MirroredStrategy strategy = mirrored(2);
  fails = true;
  EXPECT_THAT(thrown<NotFoundError>([&] { strategy.run([] { Variable(1., {.name = "v"}); }); }),
              HasSubstr("no such name"));
  fails = false;
  const auto names = strategy.run([] { return name_of_new(); });
  for (const std::string& name : names.values()) EXPECT_EQ(name, "outer/v");
}

TEST(VariableCreatorScope, WrongCreatorsAreRefused) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { variable_creator_scope(nullptr).close(); }),
              HasSubstr("empty function"));
  auto nothing = variable_creator_scope(
      [](const NextVariableCreator&, const VariableCreation&) { return Variable(); });
  EXPECT_THAT(refused([] { Variable(1., {.name = "v"}); }),
              AllOf(HasSubstr("empty Variable"), HasSubstr("'v'"), HasSubstr("next")));
}

TEST(VariableCreatorScope, ADeviceOfAPsTaskNeedsPsTasks) {
  auto placed =
      variable_creator_scope([](const NextVariableCreator& next, VariableCreation creation) {
        creation.device = "/job:ps/task:0";
        return next(std::move(creation));
      });
  EXPECT_THAT(refused([] { Variable(1., {.name = "v"}); }),
              AllOf(HasSubstr("'/job:ps/task:0'"), HasSubstr("'v'"), HasSubstr("no ps tasks")));
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  EXPECT_THAT(refused([] { Variable(1.); }), HasSubstr("MirroredStrategy"));
}

TEST(VariableCreatorScope, NextIsCalledByItsCreator) {
  std::optional<NextVariableCreator> kept;
  std::optional<VariableCreation> asked;
  std::string elsewhere;
  auto scope =
      variable_creator_scope([&](const NextVariableCreator& next, VariableCreation creation) {
        kept = next;
        asked = creation;
        std::thread([&] {
          elsewhere = thrown<FailedPreconditionError>([&] { next(creation); });
        }).join();
        return next(std::move(creation));
      });
  const Variable v(1., {.name = "v"});
  EXPECT_THAT(elsewhere, AllOf(HasSubstr("'v'"), HasSubstr("another thread")));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { (*kept)(*asked); }),
              AllOf(HasSubstr("'v'"), HasSubstr("returned")));
}

TEST(VariableCreatorScope, EndsInAnotherOrderWithAnErrorAndIsClosed) {
  const MirroredStrategy strategy = mirrored(2);
  {
    auto outer = variable_creator_scope(named("outer"));
    auto inner = variable_creator_scope(named("inner"));
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { outer.close(); }),
                AllOf(HasSubstr("scope nesting error"), HasSubstr("variable_creator_scope")));
    EXPECT_EQ(name_of_new(), "inner/v");
    inner.close();
    EXPECT_EQ(name_of_new(), "v");
  }
  {
    auto scope = std::make_unique<Scope>(strategy.core());
    auto creator = variable_creator_scope(named("inner"));
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { scope->close(); }),
                AllOf(HasSubstr("scope nesting error"), HasSubstr("MirroredStrategy")));
    EXPECT_FALSE(has_strategy());
    EXPECT_EQ(name_of_new(), "inner/v");
    creator.close();
  }
  {
    auto creator = std::make_unique<VariableCreatorScope>(named("outer"));
    auto scope = strategy.scope();
    testing::internal::CaptureStderr();
    creator.reset();
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("scope nesting error"));
    EXPECT_TRUE(get_strategy() == strategy);
    EXPECT_EQ(name_of_new(), "v");
  }
  auto creator = std::make_unique<VariableCreatorScope>(named("outer"));
  std::thread([&] { EXPECT_THROW(creator->close(), FailedPreconditionError); }).join();
  EXPECT_EQ(name_of_new(), "v");
  EXPECT_FALSE(has_strategy());
}

// What the library's own code makes it computes with.
TEST(VariableCreatorScope, TheLibrarysOwnVariablesStayAsTheyAreAskedFor) {
  const MirroredStrategy strategy = mirrored(2);
  const Variable outside(at::zeros({2}), {.name = "outside"});
  const auto strategy_scope = strategy.scope();
  const VariableSpec spec{.shape = {2}, .options = {.name = "slot", .trainable = false}};
  const auto error_with = [&](const VariableCreator& creator) {
    auto scope = variable_creator_scope(creator);
    return refused([&] {
      internal::create_own_variable(
          spec, [](const ShardInfo& shard) { return at::zeros(shard.shape, float32); });
    });
  };
  EXPECT_EQ(error_with(named("mine")), "accepted");
  EXPECT_THAT(error_with([](const NextVariableCreator& next, VariableCreation creation) {
                creation.options.dtype = float64;
                return next(std::move(creation));
              }),
              AllOf(HasSubstr("'slot' is to be float32 [2]"), HasSubstr("float64 [2]")));
  EXPECT_THAT(error_with([](const NextVariableCreator& next, VariableCreation creation) {
                creation.set_initial_value(at::zeros({3}));
                return next(std::move(creation));
              }),
              HasSubstr("float32 [3]"));
  EXPECT_THAT(error_with([](const NextVariableCreator& next, VariableCreation creation) {
                creation.options.synchronization = VariableSynchronization::ON_READ;
                return next(std::move(creation));
              }),
              HasSubstr("ON_READ"));
  EXPECT_THAT(
      error_with([&](const NextVariableCreator&, const VariableCreation&) { return outside; }),
      AllOf(HasSubstr("'outside'"), HasSubstr("MirroredStrategy")));
}

}  // namespace
}  // namespace cohort::distribute
