#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/structure/structure.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy_extended.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_storage.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/ops/make_tensor.h"

namespace cohort::distribute {
namespace {

using ::testing::HasSubstr;
using enum VariableAggregation;

// The value of each replica's component, all of which must be equal: "[0.0, 2.0, 2.0]".
std::string rows_of(const Variable& v) {
  const PerReplica<Tensor> components = v.components();
  for (const Tensor& component : components.values()) {
    EXPECT_TRUE(component.equal(components.value(0)));
  }
  return internal::str(Structure(components.value(0)));
}

// Replica r's rows: values r and r + 1 at r and r + 1.
IndexedSlices two_rows(ReplicaContext& replica) {
  const int r = replica.replica_id_in_sync_group();
  return {.values = constant({1. * r, 1. * r + 1}), .indices = constant({r, r + 1})};
}
// Replica r's row: value r + 2 at r.
IndexedSlices one_row(ReplicaContext& replica) {
  const int r = replica.replica_id_in_sync_group();
  return {.values = constant({r + 2.}), .indices = constant({r})};
}
IndexedSlices at_one(double value) {
  return {.values = constant({value}), .indices = constant({1})};
}

// However the variables are stored.
class Scatter : public ::testing::TestWithParam<Storage> {
 protected:
  Variable make(std::initializer_list<NumberLiteral> initial,
                VariableAggregation aggregation = NONE) {
    auto scope = strategy.scope();
    return Variable(initial, {.name = "v", .aggregation = aggregation});
  }
  const Strategy strategy = with_storage(GetParam(), 2);
};
INSTANTIATE_TEST_SUITE_P(Storage, Scatter, ::testing::ValuesIn(kStorages),
                         [](const auto& storage) { return storage_name(storage.param); });

TEST_P(Scatter, AcrossReplicasWritesEveryComponent) {
  for (const auto aggregation : {NONE, SUM, MEAN, ONLY_FIRST_REPLICA}) {
    const Variable v = make({1., 6., 1.}, aggregation);
    v.scatter_add(at_one(2));
    EXPECT_EQ(rows_of(v), "[1.0, 8.0, 1.0]");
    v.scatter_sub(at_one(4));
    EXPECT_EQ(rows_of(v), "[1.0, 4.0, 1.0]");
    v.scatter_mul(at_one(3));
    EXPECT_EQ(rows_of(v), "[1.0, 12.0, 1.0]");
    v.scatter_div(at_one(2));
    EXPECT_EQ(rows_of(v), "[1.0, 6.0, 1.0]");
    v.scatter_min(at_one(2));
    EXPECT_EQ(rows_of(v), "[1.0, 2.0, 1.0]");
    v.scatter_max(at_one(5));
    EXPECT_EQ(rows_of(v), "[1.0, 5.0, 1.0]");
    v.scatter_update(at_one(9));
    EXPECT_EQ(rows_of(v), "[1.0, 9.0, 1.0]");
  }
}

TEST_P(Scatter, InAReplicaTheReplicasRowsAreAddedUp) {
  const Variable v = make({0., 0., 0.}, SUM);
  strategy.run([&](ReplicaContext& replica) { v.scatter_add(two_rows(replica)); });
  EXPECT_EQ(rows_of(v), "[0.0, 2.0, 2.0]");
  const Variable w = make({1., 6., 1.}, SUM);
  strategy.run([&](ReplicaContext& replica) { w.scatter_div(one_row(replica)); });
  EXPECT_EQ(rows_of(w), "[0.5, 2.0, 1.0]");
}

TEST_P(Scatter, InAReplicaMeanDividesTheValues) {
  const Variable v = make({0., 0., 0.}, MEAN);
  strategy.run([&](ReplicaContext& replica) { v.scatter_sub(two_rows(replica)); });
  EXPECT_EQ(rows_of(v), "[0.0, -1.0, -1.0]");
  const Variable w = make({2., 1., 1.}, MEAN);
  strategy.run([&](ReplicaContext& replica) { w.scatter_mul(one_row(replica)); });
  EXPECT_EQ(rows_of(w), "[2.0, 1.5, 1.0]");
}

TEST_P(Scatter, InAReplicaOnlyTheFirstOnesRows) {
  const Variable v = make({0., 2., 0.}, ONLY_FIRST_REPLICA);
  strategy.run([&] { v.scatter_min(at_one(1)); });
  EXPECT_EQ(rows_of(v), "[0.0, 1.0, 0.0]");
  strategy.run([&] { v.scatter_max(at_one(3)); });
  EXPECT_EQ(rows_of(v), "[0.0, 3.0, 0.0]");
  strategy.run([&](ReplicaContext& replica) { v.scatter_update(one_row(replica)); });
  EXPECT_EQ(rows_of(v), "[2.0, 3.0, 0.0]");
}

TEST_P(Scatter, InAReplicaMinimaOfSumsAreUnimplemented) {
  for (const auto aggregation : {SUM, MEAN}) {
    const Variable v = make({0., 2., 0.}, aggregation);
    const auto all = [&](auto call) {
      return thrown<UnimplementedError>([&] { strategy.run([&] { call(); }); });
    };
    EXPECT_THAT(all([&] { v.scatter_min(at_one(1)); }), HasSubstr("scatter_min"));
    EXPECT_THAT(all([&] { v.scatter_max(at_one(1)); }), HasSubstr("scatter_max"));
    EXPECT_THAT(all([&] { v.scatter_update(at_one(1)); }), HasSubstr("scatter_update"));
    EXPECT_EQ(rows_of(v), "[0.0, 2.0, 0.0]");
  }
}

TEST_P(Scatter, InAReplicaWithoutAggregationIsRefused) {
  const Variable v = make({0., 2., 0.});
  EXPECT_THAT(refused([&] { strategy.run([&] { v.scatter_add(at_one(1)); }); }),
              HasSubstr("aggregation"));
}

TEST_P(Scatter, TheReplicasMayBringDifferentNumbersOfRows) {
  const Variable v = make({0., 0., 0.}, SUM);
  strategy.run([&](ReplicaContext& replica) {
    v.scatter_add(replica.replica_id_in_sync_group() == 0
                      ? IndexedSlices{zeros({0}), zeros({0}, int64)}
                      : two_rows(replica));
  });
  EXPECT_EQ(rows_of(v), "[0.0, 1.0, 2.0]");
}

TEST_P(Scatter, AnIndexMayComeTwice) {
  const IndexedSlices twice = {.values = constant({2., 3.}), .indices = constant({1, 1})};
  const Variable v = make({1., 1., 1.});
  v.scatter_add(twice);
  EXPECT_EQ(rows_of(v), "[1.0, 6.0, 1.0]");
  v.scatter_mul(twice);
  EXPECT_EQ(rows_of(v), "[1.0, 36.0, 1.0]");
  v.scatter_update(twice);
  EXPECT_EQ(rows_of(v), "[1.0, 3.0, 1.0]");
}

TEST_P(Scatter, TheVariablesOwnValueMayBeScattered) {
  const Variable v = make({1., 2., 3.});
  v.scatter_add({v.value(), constant({2, 1, 0})});
  EXPECT_EQ(rows_of(v), "[4.0, 4.0, 4.0]");
}

TEST_P(Scatter, RowsOfAMatrixAndOfIntegers) {
  const Variable v = make({{1, 2}, {3, 4}});
  v.scatter_add({.values = constant({{10, 10}}), .indices = constant({1}, int64)});
  EXPECT_EQ(rows_of(v), "[[1, 2], [13, 14]]");
  v.scatter_div({.values = constant({{-5, 5}}), .indices = constant({1})});
  EXPECT_EQ(rows_of(v), "[[1, 2], [-2, 2]]");
}

TEST_P(Scatter, InAnUpdateWritesTheComponentThatIsUpdated) {
  const Variable v = make({1., 1., 1.});
  auto scope = strategy.scope();
  strategy.extended().update(
      v, [](Variable& each, const Tensor&) { each.scatter_add(at_one(1)); }, zeros({}));
  scope.close();
  EXPECT_EQ(rows_of(v), "[1.0, 2.0, 1.0]");
}

TEST_P(Scatter, WhatDoesNotFitIsRefused) {
  const Variable v = make({0., 0., 0.});
  EXPECT_THAT(refused([&] {
                v.scatter_add({constant({1.}), constant({3})});
              }),
              HasSubstr("indices[0] = 3 is not in [0, 3)"));
  EXPECT_THAT(refused([&] {
                v.scatter_add({constant({1.}), constant({-1})});
              }),
              HasSubstr("indices[0] = -1"));
  EXPECT_THAT(refused([&] {
                v.scatter_add({constant({1., 2.}), constant({0})});
              }),
              HasSubstr("indices are int32 [1] and values float32 [2]"));
  EXPECT_THAT(refused([&] {
                v.scatter_add({constant({1.}), constant({0.})});
              }),
              HasSubstr("whole numbers"));
  EXPECT_THAT(refused([&] { v.scatter_add({Tensor(), Tensor()}); }), HasSubstr("undefined"));
  EXPECT_THAT(refused([] { Variable(1.).scatter_add(at_one(1)); }), HasSubstr("rank 0"));
  EXPECT_EQ(rows_of(v), "[0.0, 0.0, 0.0]");
}

TEST_P(Scatter, OfAnOnReadVariableIsUnimplemented) {
  auto scope = strategy.scope();
  const Variable v({0., 0.},
                   {.synchronization = VariableSynchronization::ON_READ, .aggregation = SUM});
  scope.close();
  const auto in_a_replica = [&] { strategy.run([&] { v.scatter_add(at_one(1)); }); };
  EXPECT_THAT(thrown<UnimplementedError>(in_a_replica), HasSubstr("ON_READ"));
  EXPECT_THAT(thrown<UnimplementedError>([&] { v.scatter_sub(at_one(1)); }), HasSubstr("ON_READ"));
}

TEST(ScatterOutsideOfStrategies, WritesTheVariable) {
  const Variable v({0., 0.});
  v.scatter_add(at_one(1));
  EXPECT_EQ(rows_of(v), "[0.0, 1.0]");
  const Variable w({0., 0.}, {.synchronization = VariableSynchronization::ON_READ});
  w.scatter_add(at_one(1));
  EXPECT_EQ(rows_of(w), "[0.0, 1.0]");
}

TEST(ScatterOutsideOfStrategies, TapesRefuseTheValueFromBefore) {
  const Variable v({1., 2.});
  const Tensor square = v.value() * v.value();
  v.scatter_add(at_one(1));
  EXPECT_ANY_THROW(square.sum().backward());
}

}  // namespace
}  // namespace cohort::distribute
