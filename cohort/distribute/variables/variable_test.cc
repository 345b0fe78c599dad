#include "cohort/distribute/variables/variable.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>
#include <vector>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_storage.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum VariableAggregation;

// ON_WRITE variables, however they are stored.
class MirroredVariableTest : public ::testing::TestWithParam<Storage> {
 protected:
  Variable make(double initial, VariableAggregation aggregation = NONE) {
    auto scope = strategy.scope();
    return Variable(number(initial), {.name = "v", .aggregation = aggregation});
  }
  // What each replica reads.
  std::vector<double> everywhere(const Variable& v) const {
    return values(strategy.run([&] { return v.value(); }));
  }
  size_t copies() const { return GetParam() == Storage::kCentral ? 1 : 2; }

  const Strategy strategy = with_storage(GetParam(), 2);
};
INSTANTIATE_TEST_SUITE_P(Storage, MirroredVariableTest, ::testing::ValuesIn(kStorages),
                         [](const auto& storage) { return storage_name(storage.param); });

TEST_P(MirroredVariableTest, CrossReplicaAssignReachesEveryComponent) {
  for (const auto aggregation : {NONE, SUM, MEAN, ONLY_FIRST_REPLICA}) {
    const Variable v = make(0, aggregation);
    v.assign(number(1));
    EXPECT_THAT(everywhere(v), ElementsAre(1, 1));
    auto scope = strategy.scope();
    v.assign_add(number(1));
    EXPECT_THAT(everywhere(v), ElementsAre(2, 2));
    v.assign_sub(-1);
    EXPECT_THAT(everywhere(v), ElementsAre(3, 3));
    v.assign(Mirrored<Tensor>({number(7), number(7)}));
    EXPECT_THAT(everywhere(v), ElementsAre(7, 7));
  }
}

TEST_P(MirroredVariableTest, ReplicaAssignAggregates) {
  const std::vector<std::pair<VariableAggregation, double>> cases = {
      {SUM, 4}, {MEAN, 2}, {ONLY_FIRST_REPLICA, 2}};
  for (const auto& [aggregation, expected] : cases) {
    const Variable v = make(0, aggregation);
    strategy.run([&] { v.assign(number(2)); });
    EXPECT_THAT(everywhere(v), ElementsAre(expected, expected));
    v.assign(0);
    strategy.run([&] { v.assign_add(number(2)); });
    EXPECT_THAT(everywhere(v), ElementsAre(expected, expected));
    strategy.run([&] { v.assign_sub(number(2)); });
    EXPECT_THAT(everywhere(v), ElementsAre(0, 0));
  }
}

TEST_P(MirroredVariableTest, OnlyFirstReplicaTakesReplicaZerosValue) {
  const Variable v = make(15, ONLY_FIRST_REPLICA);
  strategy.run(
      [&](ReplicaContext& context) { v.assign(number(context.replica_id_in_sync_group())); });
  EXPECT_THAT(everywhere(v), ElementsAre(0, 0));
}

TEST_P(MirroredVariableTest, AssignedValueIsSeenByEveryReplicaAtOnce) {
  const Variable v = make(1, MEAN);
  const auto seen = strategy.run([&] {
    v.assign_add(number(1));
    return v.value();
  });
  EXPECT_THAT(values(seen), ElementsAre(2, 2));
}

// As mirrored_variable_test's testAssignReturnValueIsTensorLike.
TEST_P(MirroredVariableTest, AssignReturnsTheVariable) {
  const Variable v = make(1, MEAN);
  EXPECT_EQ(&v.assign(number(2)), &v);
  EXPECT_EQ(&v.assign(Mirrored<Tensor>({number(2), number(2)})), &v);
  EXPECT_EQ(v.assign_add(1.).assign_sub(number(1)).value().item<double>(), 2);
  EXPECT_EQ((v.assign(3.) - 1).item<double>(), 2);
  EXPECT_THAT(values(strategy.run([&] { return v.assign_add(1.).value(); })), ElementsAre(4, 4));
  EXPECT_EQ(strategy.run([&] { return v.assign_sub(number(1)); }), v);
  EXPECT_THAT(everywhere(v), ElementsAre(3, 3));
}

TEST_P(MirroredVariableTest, ReplicaAssignWithoutAggregationIsRefused) {
  const Variable v = make(1);
  try {
    strategy.run([&] { v.assign(number(2)); });
    FAIL() << "assigned";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("You must specify an aggregation method"));
    EXPECT_THAT(error.what(), HasSubstr("'v'"));
  }
  EXPECT_THAT(everywhere(v), ElementsAre(1, 1));
}

TEST_P(MirroredVariableTest, ItsOwnValueMayBeAssignedToIt) {
  const Variable v = make(3, ONLY_FIRST_REPLICA);
  v.assign_add(v.value());
  EXPECT_THAT(everywhere(v), ElementsAre(6, 6));
  strategy.run([&] { v.assign_add(v.value()); });
  EXPECT_THAT(everywhere(v), ElementsAre(12, 12));
}

TEST_P(MirroredVariableTest, ReplicasThatAssignDifferentlyAreNamed) {
  const Variable v = make(3, SUM), w = make(4, SUM);
  for (const bool other_variable : {false, true}) {
    try {
      strategy.run([&](ReplicaContext& context) {
        if (context.replica_id_in_sync_group() == 0) {
          v.assign_add(number(1));
        } else if (other_variable) {
          w.assign_add(number(1));
        } else {
          v.assign(number(1));
        }
      });
      FAIL() << "assigned";
    } catch (const FailedPreconditionError& error) {
      EXPECT_THAT(error.what(), HasSubstr("while another calls assign"));
    }
    EXPECT_THAT(everywhere(v), ElementsAre(3, 3));
  }
}

TEST_P(MirroredVariableTest, MeanOfIntegersInAReplicaIsRefused) {
  auto scope = strategy.scope();
  const Variable v(at::ones({}, at::kLong), {.aggregation = MEAN});
  scope.close();
  EXPECT_THROW(strategy.run([&] { v.assign(at::ones({}, at::kLong)); }), InvalidArgumentError);
}

// As mirrored_variable_test's testAssignMirroredVarReplicaContextWithSum, and
// custom_training_loop_input_test's testStatefulExperimentalRunAlwaysExecute.
TEST_P(MirroredVariableTest, ANumberInAReplicaIsNoPartOfASum) {
  const Variable sum = make(1, SUM), mean = make(0, MEAN), first = make(1, ONLY_FIRST_REPLICA);
  const std::vector<std::function<void()>> refused_calls = {
      [&] { sum.assign(5.0); }, [&] { sum.assign_add(5.0); }, [&] { sum.assign_sub(5.0); }};
  for (const auto& call : refused_calls) {
    EXPECT_THAT(refused([&] { strategy.run([&] { call(); }); }),
                HasSubstr("A non-DistributedValues value 5 cannot be reduced with the given reduce "
                          "op SUM"));
    EXPECT_THAT(everywhere(sum), ElementsAre(1, 1));
  }
  strategy.run([&] {
    sum.assign_add(number(5));  // each replica's own
    mean.assign_add(1.0);
    first.assign_sub(3.0);
  });
  EXPECT_THAT(everywhere(sum), ElementsAre(11, 11));
  EXPECT_THAT(everywhere(mean), ElementsAre(1, 1));
  EXPECT_THAT(everywhere(first), ElementsAre(-2, -2));
  strategy.run([&](ReplicaContext& context) {
    sum.assign(0.0);  // nothing is nobody's part
    context.merge_call([&](Strategy&) { sum.assign_add(5.0); });
  });
  EXPECT_THAT(everywhere(sum), ElementsAre(5, 5));
}

TEST_P(MirroredVariableTest, EachReplicaRecordsThroughALeafOfItsOwn) {
  const Variable v = make(3);
  const auto gradients = strategy.run([&](ReplicaContext& context) {
    GradientTape tape;
    const Tensor loss = v.value() * (context.replica_id_in_sync_group() + 1.0);
    return tape.gradient(loss, std::vector<Variable>{v})[0];
  });
  EXPECT_THAT(values(gradients), ElementsAre(1, 2));
  const auto leaves = strategy.run([&] { return v.value().unsafeGetTensorImpl(); });
  EXPECT_NE(leaves.value(0), leaves.value(1));
  const bool one_storage = v.impl().local().component(0).is_alias_of(v.impl().local().component(1));
  EXPECT_EQ(one_storage, GetParam() != Storage::kPerReplica);
}

TEST_P(MirroredVariableTest, ATapeRefusesAValueThatWasOverwritten) {
  const Variable v = make(3);
  strategy.run([&](ReplicaContext& context) {
    GradientTape tape;
    const Tensor x = v.value();
    const Tensor loss = x * x;
    context.merge_call([&](Strategy&) { v.assign(5.0); });
    EXPECT_THROW(tape.gradient(loss, x), InvalidArgumentError);
  });
}

TEST_P(MirroredVariableTest, MadeInsideRunItIsOneVariable) {
  random::set_seed(3);
  const auto made = strategy.run([&](ReplicaContext& context) {
    const Variable v([] { return random::normal({4}); }, {.name = "inside"});
    EXPECT_EQ(v.components().size(), copies());
    (void)context;
    return v;
  });
  const auto parts = made.components();
  EXPECT_TRUE(at::equal(parts.value(0), parts.value(copies() - 1)));
  EXPECT_EQ(made.name(), "inside");
}

TEST_P(MirroredVariableTest, OfAnotherStrategyIsRefused) {
  const Variable v = make(1, SUM);
  const MirroredStrategy other({"CPU:0"});
  const auto message = [&](const std::function<void()>& fn) -> std::string {
    try {
      fn();
    } catch (const FailedPreconditionError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_THAT(message([&] { other.run([&] { v.value(); }); }), HasSubstr("Mixing different"));
  EXPECT_THAT(message([&] { other.run([&] { v.assign(2); }); }), HasSubstr("'v'"));
  auto scope = other.scope();
  EXPECT_THAT(message([&] { v.assign(2); }), HasSubstr("Mixing different"));
}

TEST_P(MirroredVariableTest, PrintsItsComponents) {
  std::ostringstream out;
  out << make(1);
  EXPECT_EQ(out.str(), copies() == 1
                           ? "<Variable 'v:0' shape=[] dtype=float64 value=1.0>"
                           : "MirroredVariable:{\n"
                             "  0: <Variable 'v:0' shape=[] dtype=float64 value=1.0>,\n"
                             "  1: <Variable 'v/replica_1:0' shape=[] dtype=float64 value=1.0>\n"
                             "}");
}

TEST(SyncOnReadVariable, ReplicasWriteTheirOwnAndReadingAggregates) {
  const std::vector<std::pair<VariableAggregation, double>> cases = {
      {SUM, 3}, {MEAN, 1}, {ONLY_FIRST_REPLICA, 0}};
  for (const auto& [aggregation, expected] : cases) {
    const MirroredStrategy strategy = mirrored(3);
    auto scope = strategy.scope();
    const Variable v(number(0), {.synchronization = VariableSynchronization::ON_READ,
                                 .aggregation = aggregation});
    EXPECT_FALSE(v.trainable());
    const auto own = strategy.run([&](ReplicaContext& context) {
      v.assign(number(context.replica_id_in_sync_group()));
      return v.value().clone();
    });
    EXPECT_THAT(values(own), ElementsAre(0, 1, 2));
    EXPECT_EQ(v.value().item<double>(), expected);
  }
}

TEST(SyncOnReadVariable, CrossReplicaAssignSharesOutASum) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable sum(
      number(0),
      {.name = "total", .synchronization = VariableSynchronization::ON_READ, .aggregation = SUM});
  sum.assign(2);
  EXPECT_THAT(components(sum), ElementsAre(1, 1));
  try {
    sum.assign_add(1);
    FAIL() << "added";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("SyncOnReadVariable does not support `assign_add`"));
    EXPECT_THAT(error.what(), HasSubstr("'total'"));
  }
  EXPECT_THROW(sum.assign_sub(1), InvalidArgumentError);
  const Variable mean(number(0),
                      {.synchronization = VariableSynchronization::ON_READ, .aggregation = MEAN});
  mean.assign(2);
  mean.assign_add(1);
  EXPECT_THAT(components(mean), ElementsAre(3, 3));
}

TEST(SyncOnReadVariable, ASumOfIntegersIsSharedOutWithItsRemainder) {
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable sum(at::zeros({}, int64),
                     {.synchronization = VariableSynchronization::ON_READ, .aggregation = SUM});
  sum.assign(at::full({}, 7, int64));
  EXPECT_EQ(sum.value().item<int64_t>(), 7);
}

TEST(SyncOnReadVariable, TheMeanOfIntegersIsThatOfReduce) {
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable mean(at::zeros({}, int64),
                      {.synchronization = VariableSynchronization::ON_READ, .aggregation = MEAN});
  strategy.run([&](ReplicaContext& context) {
    mean.assign(at::full({}, 100'000'001 + 3 * context.replica_id_in_sync_group(), int64));
  });
  EXPECT_EQ(mean.value().item<double>(), 100'000'002.5);
}

// Of both kinds.
TEST(VariableSums, ThatTheDtypeCannotHoldAreErrorsThatSayIt) {
  const MirroredStrategy strategy = mirrored(2);
  for (const auto synchronization :
       {VariableSynchronization::ON_READ, VariableSynchronization::ON_WRITE}) {
    auto scope = strategy.scope();
    const Variable sum(at::zeros({}, int32),
                       {.name = "total", .synchronization = synchronization, .aggregation = SUM});
    scope.close();
    EXPECT_THAT(
        [&] {
          strategy.run([&] { sum.assign(at::full({}, 2'000'000'000, int32)); });
          sum.value();
        },
        ::testing::ThrowsMessage<InvalidArgumentError>(
            ::testing::AllOf(HasSubstr("variable 'total'"), HasSubstr("4000000000"))));
  }
}

TEST(SyncOnReadVariable, ANumberIsAddedAsATensorIsToTheBit) {
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  for (const DType dtype : {float32, float64, int64}) {
    const VariableSpec spec{
        .dtype = dtype,
        .options = {.synchronization = VariableSynchronization::ON_READ, .aggregation = SUM}};
    const auto zero = [&](const ShardInfo&) { return at::zeros({}, dtype); };
    const Variable by_number(spec, zero);
    const Variable by_tensor(spec, zero);
    strategy.run([&](ReplicaContext& context) {
      const at::Scalar delta =
          dtype == int64 ? at::Scalar(3) : at::Scalar(0.1 + context.replica_id_in_sync_group());
      for (int i = 0; i < 10; ++i) {
        by_number.assign_add(delta);
        by_tensor.assign_add(at::full({}, delta, dtype));
      }
    });
    for (size_t replica = 0; replica < 2; ++replica) {
      EXPECT_TRUE(
          at::equal(by_number.components().value(replica), by_tensor.components().value(replica)));
    }
    EXPECT_THROW(by_number.assign_add(1), InvalidArgumentError);  // whose part would it be
  }
}

TEST(SyncOnReadVariable, WithoutAggregationHasNoValueAcrossReplicas) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(1), {.synchronization = VariableSynchronization::ON_READ});
  EXPECT_THROW(v.value(), InvalidArgumentError);
  EXPECT_THAT(values(strategy.run([&] { return v.value(); })), ElementsAre(1, 1));
}

TEST(SyncOnReadVariable, SyncOnReadContextReadsTheAggregateInAReplica) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(0),
                   {.synchronization = VariableSynchronization::ON_READ, .aggregation = SUM});
  const auto seen = strategy.run([&] {
    v.assign_add(number(1));
    const Tensor own = v.value() + 10;
    VariableSyncOnReadContext aggregate;
    return own * 100 + (v.value() + 10);
  });
  EXPECT_THAT(values(seen), ElementsAre(1112, 1112));
}

TEST(Variable, OutsideOfAScopeIsPlain) {
  const Variable v(number(1));
  v.assign_add(2);
  EXPECT_EQ(v.value().item<double>(), 3);
  EXPECT_EQ(v.components().size(), 1U);
  std::ostringstream out;
  out << v;
  EXPECT_EQ(out.str(), "<Variable 'Variable:0' shape=[] dtype=float64 value=3.0>");
}

TEST(Variable, OfOutsideCannotBeAssignedByReplicasButRead) {
  const Variable v(number(1));
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT(values(strategy.run([&] { return v.value(); })), ElementsAre(1, 1));
  EXPECT_THROW(strategy.run([&] { v.assign(2); }), FailedPreconditionError);
}

TEST(Variable, ChecksShapeAndDtypeOfAValue) {
  const Variable v(at::ones({2}), {.name = "w"});
  try {
    v.assign(at::ones({3}));
    FAIL() << "assigned";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("float32 [3] to variable 'w', which is float32 [2]"));
  }
  EXPECT_THROW(v.assign(Tensor()), InvalidArgumentError);
  const Variable count(at::ones({}, at::kLong));
  EXPECT_THROW(count.assign(at::full({}, 1.5)), InvalidArgumentError);
}

TEST(Variable, TakesNumbersThatItsDtypeHolds) {
  const Variable big(int64_t{0}, {.name = "big"});
  big.assign(int64_t{9007199254740993});
  EXPECT_EQ(big.value().item<int64_t>(), 9007199254740993);
  big.assign_add(size_t{1}).assign_sub(-2);
  EXPECT_EQ(big.value().item<int64_t>(), 9007199254740996);
  const Variable small(at::zeros({2}, at::kByte));
  EXPECT_EQ(small.assign(255).value().sum().item<int64_t>(), 510);
  const Variable half(at::zeros({}, at::kHalf));
  EXPECT_EQ(half.assign(1e6).value().item<double>(), INFINITY);  // as a constant of that dtype
  EXPECT_EQ(half.assign(70000).value().item<double>(), INFINITY);
  const Variable single(0.);
  EXPECT_EQ(single.assign(1e300).value().item<double>(), INFINITY);
  EXPECT_EQ(single.assign(at::Scalar(3)).value().item<double>(), 3);
  EXPECT_TRUE(Variable(false).assign(true).value().item<bool>());
}

TEST(Variable, RefusesNumbersThatItsDtypeWouldLose) {
  const Variable count(0, {.name = "count"});
  EXPECT_THAT(refused([&] { count.assign_add(0.5); }),
              HasSubstr("assign_add the number 0.5 to variable 'count', which is int32"));
  EXPECT_THAT(refused([&] { count.assign(3e9); }), HasSubstr("3e+09"));
  EXPECT_THAT(refused([&] { count.assign(int64_t{3'000'000'000}); }), HasSubstr("3000000000"));
  EXPECT_THAT(refused([&] { count.assign(NAN); }), HasSubstr("nan"));
  EXPECT_THAT(refused([&] { count.assign_sub(true); }), HasSubstr("true"));
  EXPECT_EQ(count.value().item<int64_t>(), 0);
  const Variable small(at::zeros({}, at::kByte), {.name = "small"});
  EXPECT_THAT(refused([&] { small.assign(-1); }), HasSubstr("-1 to variable 'small'"));
  EXPECT_THAT(refused([] { Variable(false).assign(1); }), HasSubstr("bool"));
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable seen(
      0.,
      {.name = "seen", .synchronization = VariableSynchronization::ON_READ, .aggregation = SUM});
  EXPECT_THAT(refused([&] { strategy.run([&] { seen.assign_add(true); }); }), HasSubstr("'seen'"));
}

TEST(Variable, RefusesOptionsThatAreNoEnumerators) {
  EXPECT_THAT(
      refused([] { Variable(0., {.name = "v", .synchronization = VariableSynchronization(77)}); }),
      HasSubstr("'v': VariableSynchronization 77"));
  EXPECT_THAT(refused([] { Variable(0., {.name = "v", .aggregation = VariableAggregation(77)}); }),
              HasSubstr("'v': VariableAggregation 77"));
}

TEST(Variable, ResolvesItsOptions) {
  EXPECT_TRUE(Variable(number(1)).trainable());
  EXPECT_FALSE(Variable(at::ones({}, at::kLong)).trainable());
  EXPECT_EQ(Variable(number(1)).synchronization(), VariableSynchronization::ON_WRITE);
  EXPECT_THROW(Variable(at::ones({}, at::kLong), {.trainable = true}), InvalidArgumentError);
  EXPECT_THROW(Variable{Tensor()}, InvalidArgumentError);
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  EXPECT_THROW(Variable(number(1), {.synchronization = VariableSynchronization::NONE}),
               InvalidArgumentError);
}

TEST(Variable, AnEmptyHandleSaysSo) {
  const Variable v;
  EXPECT_FALSE(v);
  EXPECT_THROW(v.value(), FailedPreconditionError);
}

TEST(Variable, ItsInitialValueIsACopy) {
  const Tensor initial = at::ones({2});
  const Variable v(initial);
  initial.zero_();
  EXPECT_TRUE(at::equal(v.components().item(), at::ones({2})));
}

TEST(LocalVariable, BoundTensorIsTheLeafOfItsComponent) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(at::ones({2}));
  scope.close();
  const Tensor parameter = at::full({2}, 9.0).set_requires_grad(true);
  v.impl().local().bind_component(1, parameter);
  EXPECT_TRUE(at::equal(parameter.detach(), at::ones({2})));
  const auto leaves = strategy.run([&] { return v.value().unsafeGetTensorImpl(); });
  EXPECT_EQ(leaves.value(1), parameter.unsafeGetTensorImpl());
  v.assign(at::full({2}, 4.0));
  EXPECT_TRUE(at::equal(parameter.detach(), at::full({2}, 4.0)));
  EXPECT_THROW(v.impl().local().bind_component(0, at::ones({3})), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::distribute
