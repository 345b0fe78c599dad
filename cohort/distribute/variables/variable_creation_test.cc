#include "cohort/distribute/variables/variable_creation.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <sstream>
#include <thread>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class E>
std::string creation_error(const VariableSpec& spec, const VariableInitializer& initializer) {
  try {
    const Variable made(spec, initializer);
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

TEST(VariableCreation, TheInitializerRunsOnceOnTheCreatingThread) {
  const MirroredStrategy strategy = mirrored(3);
  auto scope = strategy.scope();
  std::vector<std::thread::id> calls;
  std::vector<int64_t> offset;
  for (const auto synchronization :
       {VariableSynchronization::ON_WRITE, VariableSynchronization::ON_READ}) {
    calls.clear();
    const Variable v({.shape = {2, 3}, .options = {.synchronization = synchronization}},
                     [&](const ShardInfo& shard) {
                       calls.push_back(std::this_thread::get_id());
                       offset = shard.offset;
                       return at::full(shard.shape, 5.0, float32);
                     });
    EXPECT_THAT(calls, ElementsAre(std::this_thread::get_id()));
    EXPECT_THAT(offset, ElementsAre(0, 0));
    EXPECT_THAT(v.shape(), ElementsAre(2, 3));
    const PerReplica<Tensor> all = v.components();
    for (const Tensor& one : all.values()) {
      EXPECT_TRUE(at::equal(one, at::full({2, 3}, 5.0, float32)));
    }
  }
}

TEST(VariableCreation, InAStepOneInitializerMakesTheVariableOfAll) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<int> calls = 0;
  const auto made = strategy.run([&](ReplicaContext& context) {
    const int id = context.replica_id_in_sync_group();
    return Variable({.options = {.name = "inside"}}, [&calls, id](const ShardInfo& shard) {
      ++calls;
      return at::full(shard.shape, id + 1.0, float32);
    });
  });
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(components(made), ElementsAre(1, 1));
}

// The error of a step in which each of two replicas makes the variables of `make`.
template <class Make>
std::string creation_in_step_error(const Make& make) {
  const MirroredStrategy strategy = mirrored(2);
  const std::string error = thrown<FailedPreconditionError>([&] {
    strategy.run([&](ReplicaContext& context) { make(context.replica_id_in_sync_group()); });
  });
  strategy.run([] { Variable(at::ones({1}), {.name = "next"}); });  // it can be used again
  return error;
}

TEST(VariableCreation, ReplicasThatAskForOtherVariablesAreToldWhichDiffer) {
  EXPECT_THAT(
      creation_in_step_error(
          [](int id) { Variable(at::ones({2}), {.name = id == 0 ? "foo" : "bar"}); }),
      AllOf(HasSubstr("different collective calls"), HasSubstr("variable 'foo', float32 [2]"),
            HasSubstr("variable 'bar', float32 [2]")));
  EXPECT_THAT(creation_in_step_error([](int id) { Variable(at::ones({2 + id})); }),
              AllOf(HasSubstr("float32 [2]"), HasSubstr("float32 [3]")));
  EXPECT_THAT(
      creation_in_step_error([](int id) { Variable(at::ones({2}, id == 0 ? float32 : int64)); }),
      AllOf(HasSubstr("float32 [2]"), HasSubstr("int64 [2]")));
  EXPECT_THAT(creation_in_step_error(
                  [](int id) { Variable(at::ones({2}), {.dtype = id == 0 ? float32 : float64}); }),
              AllOf(HasSubstr("float32 [2]"), HasSubstr("float64 [2]")));
  EXPECT_THAT(
      creation_in_step_error([](int id) { Variable(at::ones({2}), {.trainable = id == 0}); }),
      HasSubstr(", not trainable"));
  EXPECT_THAT(creation_in_step_error([](int id) {
                Variable(at::ones({2}),
                         {.synchronization = id == 0 ? VariableSynchronization::AUTO
                                                     : VariableSynchronization::ON_READ});
              }),
              AllOf(HasSubstr(", ON_WRITE"), HasSubstr(", ON_READ")));
  EXPECT_THAT(creation_in_step_error([](int id) {
                Variable(at::ones({2}), {.aggregation = id == 0 ? VariableAggregation::SUM
                                                                : VariableAggregation::MEAN});
              }),
              AllOf(HasSubstr("aggregation SUM"), HasSubstr("aggregation MEAN")));
}

TEST(VariableCreation, ReplicasThatMakeAnotherNumberOfVariablesAreNamed) {
  EXPECT_THAT(creation_in_step_error([](int id) {
                for (int i = 0; i <= id; ++i) Variable(at::ones({2}), {.name = "v"});
              }),
              AllOf(HasSubstr("replica 0"),
                    AnyOf(HasSubstr("ended its step after 1 of them while others wait"),
                          HasSubstr("(its step has ended)"))));  // whichever of them comes last
}

TEST(VariableCreation, InAStepWhatIsTheSameByDefaultAgrees) {
  const MirroredStrategy strategy = mirrored(2);
  strategy.run([](ReplicaContext& context) {
    const bool first = context.replica_id_in_sync_group() == 0;
    VariableOptions options{.name = "v"};
    if (first) options.synchronization = VariableSynchronization::ON_WRITE;
    if (first) options.trainable = true;
    if (first) options.dtype = float32;
    Variable(at::ones({2}), options);
  });
}

TEST(VariableCreation, WhatTheStrategyRefusesIsNeverInitialized) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  bool ran = false;
  const auto initializer = [&](const ShardInfo& shard) {
    ran = true;
    return at::zeros(shard.shape);
  };
  EXPECT_THAT(creation_error<InvalidArgumentError>(
                  {.options = {.name = "v", .synchronization = VariableSynchronization::NONE}},
                  initializer),
              AllOf(HasSubstr("NONE"), HasSubstr("'v'"), HasSubstr("MirroredStrategy")));
  EXPECT_THAT(creation_error<InvalidArgumentError>(
                  {.dtype = int64, .options = {.name = "v", .trainable = true}}, initializer),
              HasSubstr("cannot be trainable"));
  EXPECT_FALSE(ran);
}

TEST(VariableCreation, AnInitializerThatDoesNotKeepToTheSpecIsRefusedByName) {
  const VariableSpec spec{.shape = {2}, .options = {.name = "w"}};
  const auto error_of = [&](const Tensor& made) {
    return creation_error<InvalidArgumentError>(spec, [&](const ShardInfo&) { return made; });
  };
  EXPECT_THAT(error_of(at::zeros({3})),
              HasSubstr("variable 'w' made float32 [3], but was asked for float32 [2]"));
  EXPECT_THAT(error_of(at::zeros({2}, float64)), HasSubstr("made float64 [2]"));
  EXPECT_THAT(error_of(Tensor()), HasSubstr("undefined"));
}

TEST(VariableCreation, TheInitialValueOfASpecIsACopyToo) {
  const Tensor initial = at::ones({2});
  const Variable v({.shape = {2}}, [&](const ShardInfo&) { return initial; });
  initial.zero_();
  EXPECT_TRUE(at::equal(v.components().item(), at::ones({2})));
}

TEST(ShardInfo, IsABoxOfTheWhole) {
  const Tensor whole = at::arange(12).reshape({3, 4});
  const ShardInfo shard{.shape = {2, 4}, .offset = {1, 0}};
  EXPECT_TRUE(at::equal(shard.of(whole), at::arange(4, 12).reshape({2, 4})));
  EXPECT_TRUE(ShardInfo::whole({3, 4}).of(whole).is_same(whole));
  const ShardInfo corner{.shape = {1, 2}, .offset = {2, 2}};
  EXPECT_THAT(corner.of(whole)[0][1].item<int64_t>(), 11);
  EXPECT_THAT(refused([&] {
                corner.of(at::arange(9).reshape({3, 3}));
              }),
              AllOf(HasSubstr("[1,2]"), HasSubstr("[2,2]"), HasSubstr("int64 [3,3]")));
  EXPECT_THAT(refused([&] { corner.of(at::arange(3)); }), HasSubstr("int64 [3]"));
}

// A variable that has no component here.
class RemoteVariable final : public internal::VariableImpl {
 public:
  using VariableImpl::VariableImpl;
  const char* kind() const override { return "RemoteVariable"; }
  Tensor read() const override { return value_; }
  void assign(internal::AssignOp, const Tensor& value) override {
    value_ = checked_value(value, "assign");
  }
  void bind_component(size_t, Tensor) override {}
  void scatter(internal::ScatterOp op, const IndexedSlices& slices) override {
    internal::scatter_rows(
        value_, op,
        internal::checked_slices(slices, shape(), dtype(), internal::scatter_name(op), name()));
  }
  std::vector<train::CheckpointValue> checkpoint_values() override { return {}; }
  void prepare_restore(train::RestoreSource&) override {}

 private:
  Tensor value_ = at::ones({2});
};

TEST(VariableImpl, OneThatIsElsewhereIsOneComponent) {
  const Variable v(std::make_shared<RemoteVariable>(
      internal::default_core(),
      VariableSpec{.shape = {2}, .options = {.name = "far", .trainable = true}}));
  EXPECT_THAT(v.shape(), ElementsAre(2));
  EXPECT_TRUE(v.trainable());
  v.assign(3.0);
  EXPECT_TRUE(at::equal(v.value(), at::full({2}, 3.0F)));
  EXPECT_THROW(v.assign(at::ones({3})), InvalidArgumentError);
  std::ostringstream out;
  out << v;
  EXPECT_EQ(out.str(), "<Variable 'far:0' shape=[2] dtype=float32 value=[3.0, 3.0]>");
  EXPECT_FALSE(v.impl().is_local());
  ASSERT_EQ(v.components().size(), 1u);
  EXPECT_TRUE(at::equal(v.components().item(), v.value()));
  EXPECT_FALSE(v.components().item().is_alias_of(v.value()));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { v.impl().local(); }),
              AllOf(HasSubstr("'far'"), HasSubstr("RemoteVariable")));
}

}  // namespace
}  // namespace cohort::distribute
