#include "cohort/distribute/step/regroup.h"

#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>

#include <sstream>

#include "cohort/core/testing_errors.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using internal::expect_error;

Tensor scalar(double value) { return at::scalar_tensor(value); }

double value_of(const Structure& leaf) { return leaf.tensor().item<double>(); }

TEST(Regroup, LeavesBecomePerReplica) {
  const auto merged = regroup({scalar(1), scalar(2)});
  ASSERT_TRUE(merged.is_per_replica());
  EXPECT_EQ(value_of(merged.per_replica().value(0)), 1);
  EXPECT_EQ(value_of(merged.per_replica().value(1)), 2);
}

TEST(Regroup, TheSameObjectStaysAsItIs) {
  const Tensor same = scalar(1);
  const auto merged = regroup({same, same});
  ASSERT_TRUE(merged.is_plain());
  EXPECT_TRUE(merged.plain().tensor().is_same(same));
  EXPECT_TRUE(regroup({scalar(1), scalar(1)}).is_per_replica()) << "equal is not the same";
  EXPECT_TRUE(regroup({same, same}, {.always_wrap = true}).is_per_replica());
  const StringTensor text({"a"});
  EXPECT_TRUE(regroup({text, text}).is_plain());
  EXPECT_TRUE(regroup({text, StringTensor({"a"})}).is_per_replica());
}

TEST(Regroup, OfOneReplicaNothingIsWrapped) {
  EXPECT_TRUE(regroup({scalar(1)}).is_plain());
  EXPECT_TRUE(regroup({scalar(1)}, {.always_wrap = true}).is_per_replica());
}

TEST(Regroup, CanWrapAsMirrored) {
  EXPECT_TRUE(regroup({scalar(1), scalar(1)}, {.wrap = RegroupAs::MIRRORED}).is_mirrored());
}

TEST(Regroup, StructuresAreRebuilt) {
  const Tensor shared = scalar(7);
  const auto of_replica = [&](double i) -> DistributedStructure {
    return tuple(scalar(i), dict({{"a", scalar(10 * i)}, {"shared", shared}}));
  };
  const auto merged = regroup({of_replica(1), of_replica(2)});
  ASSERT_TRUE(merged.is_tuple());
  EXPECT_TRUE(merged[0].is_per_replica());
  EXPECT_EQ(value_of(merged[1]["a"].per_replica().value(1)), 20);
  EXPECT_TRUE(merged[1]["shared"].is_plain());

  const Structure second = select_replica(1, merged).to_structure();
  EXPECT_EQ(value_of(second[0]), 2);
  EXPECT_EQ(value_of(second[1]["a"]), 20);
  EXPECT_EQ(value_of(second[1]["shared"]), 7);
}

TEST(Regroup, KeysMayComeInAnotherOrder) {
  const auto merged = regroup(
      {dict({{"a", scalar(1)}, {"b", scalar(2)}}), dict({{"b", scalar(4)}, {"a", scalar(3)}})});
  EXPECT_EQ(value_of(merged["a"].per_replica().value(1)), 3);
  EXPECT_EQ(value_of(merged["b"].per_replica().value(1)), 4);
}

TEST(Regroup, AVariableComesBackAsItself) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable variable(scalar(3));
  const auto merged = regroup({DistributedStructure::make_tuple({variable, scalar(1)}),
                               DistributedStructure::make_tuple({variable, scalar(2)})});
  EXPECT_EQ(merged[0].variable(), variable);
  EXPECT_EQ(select_replica(1, merged)[0].variable(), variable);
  EXPECT_TRUE(regroup({variable, variable}, {.always_wrap = true}).is_variable());
  const Variable other(scalar(3));
  expect_error<InvalidArgumentError>([&] { regroup({variable, other}); }, "another on replica 1");
}

TEST(Regroup, DifferentFormsAreErrorsThatNameThePlace) {
  expect_error<InvalidArgumentError>([] { regroup({}); }, "there are no values");
  expect_error<InvalidArgumentError>(
      [] {
        regroup({scalar(1), tuple(scalar(1))});
      },
      "at top level: a plain leaf on replica 0, but a tuple");
  expect_error<InvalidArgumentError>(
      [] {
        regroup({tuple(scalar(1)), tuple(scalar(1), scalar(2))});
      },
      "1 members on replica 0, but 2 on replica 1");
  expect_error<InvalidArgumentError>(
      [] {
        regroup({tuple(dict({{"a", scalar(1)}})), tuple(dict({{"b", scalar(1)}}))});
      },
      "at [0]: the key 'a' on replica 0, but not on replica 1");
  const PerReplica<Tensor> distributed({scalar(1), scalar(2)});
  expect_error<InvalidArgumentError>(
      [&] {
        regroup({distributed, distributed});
      },
      "there is a PerReplica already");
}

TEST(SelectReplica, TakesComponentsAndLeavesTheRest) {
  const auto structure =
      DistributedStructure::make_dict({{"per_replica", PerReplica<Tensor>({scalar(1), scalar(2)})},
                                       {"mirrored", Mirrored<Tensor>({scalar(3), scalar(3)})},
                                       {"plain", scalar(4)}});
  const Structure first = select_replica(0, structure).to_structure();
  EXPECT_EQ(value_of(first["per_replica"]), 1);
  EXPECT_EQ(value_of(first["mirrored"]), 3);
  EXPECT_EQ(value_of(first["plain"]), 4);
  expect_error<OutOfRangeError>([&] { select_replica(2, structure); }, "replica 2");
  expect_error<InvalidArgumentError>([&] { structure.to_structure(); }, "this is a PerReplica");
  expect_error<NotFoundError>([&] { structure["other"]; }, "no key 'other'");
  EXPECT_EQ(select_replica(1, PerReplica<double>({1.5, 2.5})), 2.5);
}

TEST(SelectReplica, OfResultsOfAStep) {
  const MirroredStrategy strategy = mirrored(2);
  const PerReplica<Structure> results = strategy.run([](ReplicaContext& context) -> Structure {
    return tuple(scalar(context.replica_id_in_sync_group()), scalar(5));
  });
  const DistributedStructure structure = results;
  ASSERT_TRUE(structure.is_tuple());
  EXPECT_EQ(value_of(structure[0].per_replica().value(1)), 1);
  EXPECT_EQ(value_of(select_replica(1, structure).to_structure()[0]), 1);
}

TEST(SelectReplicaMirrored, RefusesWhatMayDiffer) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable weight(scalar(1));
  const Variable count(scalar(1), {.synchronization = VariableSynchronization::ON_READ});
  const DistributedStructure mirrored = Mirrored<Tensor>({scalar(3), scalar(3)});
  EXPECT_EQ(value_of(select_replica_mirrored(1, mirrored).to_structure()), 3);
  EXPECT_EQ(select_replica_mirrored(1, weight).variable(), weight);
  expect_error<InvalidArgumentError>(
      [&] {
        select_replica_mirrored(0, DistributedStructure::make_tuple(
                                       {mirrored, PerReplica<Tensor>({scalar(1), scalar(2)})}));
      },
      "Expected value to be mirrored across replicas: at [1]");
  expect_error<InvalidArgumentError>([&] { select_replica_mirrored(0, count); }, "a variable");
}

TEST(Regroup, PrintsAsATree) {
  std::ostringstream out;
  const Tensor same = scalar(7);
  out << regroup({tuple(scalar(1), same), tuple(scalar(2), same)});
  EXPECT_EQ(out.str().substr(0, 12), "(PerReplica:");
}

}  // namespace
}  // namespace cohort::distribute
