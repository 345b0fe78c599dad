#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor range(double from, double to) { return at::arange(from, to, at::kDouble); }
std::vector<double> list(const Tensor& tensor) {
  const Tensor flat = tensor.reshape({-1}).to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

class ReduceTest : public ::testing::Test {
 protected:
  MirroredStrategy strategy = mirrored(2);
  const Tensor number_ = at::ones({});
  PerReplica<Tensor> full{range(0, 4), range(4, 8)};
  PerReplica<Tensor> partial{range(0, 4), range(4, 6)};
};

TEST_F(ReduceTest, AcrossReplicasOnly) {
  EXPECT_THAT(list(strategy.reduce(ReduceOp::SUM, full)), ElementsAre(4, 6, 8, 10));
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, full)), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(list(strategy.reduce("sum", full)), ElementsAre(4, 6, 8, 10));
  EXPECT_THAT(list(strategy.reduce("Mean", full)), ElementsAre(2, 3, 4, 5));
}

TEST_F(ReduceTest, RefusesWhatIsNoOperation) {
  const auto none = ReduceOp(7);
  const auto is_refused = HasSubstr("reduce op 7");
  EXPECT_THAT(refused([&] { strategy.reduce(none, full); }), is_refused);
  EXPECT_THAT(refused([&] { strategy.reduce(none, range(0, 4)); }), is_refused);
  EXPECT_THAT(refused([&] {
                strategy.reduce(none, Mirrored<Tensor>{number_, number_});
              }),
              is_refused);
  const auto pairs = strategy.run([&] { return tuple(number_, number_); });
  EXPECT_THAT(refused([&] { strategy.reduce(none, pairs); }), is_refused);
  EXPECT_THAT(refused([&] { strategy.extended().reduce_to(none, full, "CPU:0"); }), is_refused);
  EXPECT_THAT(refused([&] {
                strategy.run([&](ReplicaContext& context) { context.all_reduce(none, number_); });
              }),
              is_refused);
}

TEST_F(ReduceTest, ComponentsThatAreMissingAreNamed) {
  const auto says_how_many = HasSubstr("0 components");
  EXPECT_THAT(refused([&] { strategy.gather(PerReplica<Structure>({}), 0); }), says_how_many);
  EXPECT_THAT(refused([&] { strategy.reduce(ReduceOp::SUM, PerReplica<Structure>({})); }),
              says_how_many);
}

TEST_F(ReduceTest, AlongAnAxisFirst) {
  EXPECT_THAT(list(strategy.reduce(ReduceOp::SUM, full, 0)), ElementsAre(28));
  EXPECT_THAT(list(strategy.reduce(ReduceOp::SUM, full, -1)), ElementsAre(28));
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, full, 0)), ElementsAre(3.5));
}

TEST_F(ReduceTest, MeanAlongAnAxisWeighsPartialBatches) {
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, partial, 0)), ElementsAre(2.5));
  const PerReplica<Tensor> with_empty({range(0, 4), at::zeros({0}, at::kDouble)});
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, with_empty, 0)), ElementsAre(1.5));
}

// What libtorch would say is of its own sums.
TEST_F(ReduceTest, SparseValuesAreSummedWithoutAnAxisAlone) {
  const auto sparse = [](double first) { return at::full({3, 2}, first, at::kFloat).to_sparse(1); };
  const PerReplica<Tensor> values({sparse(1), sparse(2)});
  EXPECT_THAT(list(strategy.reduce(ReduceOp::SUM, values).to_dense()), Each(3));
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, values).to_dense()), Each(1.5));
  const auto is_refused =
      AllOf(HasSubstr("along an axis of a sparse tensor"), HasSubstr("to_dense()"));
  for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::MEAN}) {
    EXPECT_THAT(thrown<UnimplementedError>([&] { strategy.reduce(op, values, 0); }), is_refused);
    EXPECT_THAT(
        thrown<UnimplementedError>([&] {
          strategy.reduce(op, PerReplica<Structure>({tuple(sparse(1)), tuple(sparse(2))}), 0);
        }),
        is_refused);
  }
  EXPECT_THAT(thrown<UnimplementedError>([&] { strategy.reduce(ReduceOp::MEAN, sparse(1), 0); }),
              is_refused);
  EXPECT_THAT(thrown<UnimplementedError>([&] { strategy.gather(values, 0); }), HasSubstr("sparse"));
}

TEST_F(ReduceTest, StringsAreGatheredNotReduced) {
  const PerReplica<Structure> words(
      {tuple(number_, StringTensor({"a"})), tuple(number_, StringTensor({"b"}))});
  EXPECT_THAT(refused([&] { strategy.reduce(ReduceOp::SUM, words); }),
              AllOf(HasSubstr("reduce of strings at [1]"), HasSubstr("gather them")));
  EXPECT_THAT(refused([&] {
                strategy.run([&](ReplicaContext& context) {
                  context.all_reduce(ReduceOp::SUM, Structure(StringTensor({"a"})));
                });
              }),
              HasSubstr("all_reduce of strings"));
}

TEST_F(ReduceTest, SeveralAxesAtOnce) {
  const PerReplica<Tensor> grids({range(0, 6).reshape({2, 3}), range(6, 12).reshape({2, 3})});
  EXPECT_THAT(list(strategy.reduce(ReduceOp::SUM, grids, {0, 1})), ElementsAre(66));
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, grids, {0, 1})), ElementsAre(5.5));
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, grids, 1)), ElementsAre(4, 7));
}

TEST_F(ReduceTest, OfOnesCountsReplicas) {
  for (const int replicas : {1, 2, 3}) {
    const MirroredStrategy some = mirrored(replicas);
    const auto ones = some.run([] { return at::ones({}); });
    EXPECT_EQ(some.reduce(ReduceOp::SUM, ones).item<float>(), static_cast<float>(replicas));
  }
}

TEST_F(ReduceTest, DifferentShapesAreAnErrorThatNamesBoth) {
  try {
    strategy.reduce(ReduceOp::SUM, partial);
    FAIL() << "reduced";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("replica 0 has float64 [4], replica 1 has float64 [2]"));
  }
  EXPECT_THAT(list(strategy.reduce(ReduceOp::SUM, full)), ElementsAre(4, 6, 8, 10));
}

TEST_F(ReduceTest, WrongAxesAndOpsAreErrors) {
  EXPECT_THROW(strategy.reduce(ReduceOp::SUM, full, 1), InvalidArgumentError);
  EXPECT_THROW(strategy.reduce(ReduceOp::SUM, full, -2), InvalidArgumentError);
  EXPECT_THROW(strategy.reduce("max", full), InvalidArgumentError);
  const PerReplica<Tensor> integers({at::ones({}, at::kLong), at::ones({}, at::kLong)});
  EXPECT_EQ(strategy.reduce(ReduceOp::SUM, integers).item<int64_t>(), 2);
  const PerReplica<Tensor> truths({at::ones({}, at::kBool), at::ones({}, at::kBool)});
  for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::MEAN}) {  // as in TensorFlow
    EXPECT_THROW(strategy.reduce(op, truths), InvalidArgumentError);
  }
  EXPECT_THROW(strategy.reduce(ReduceOp::SUM, PerReplica<Tensor>({range(0, 1)})),
               InvalidArgumentError);
}

// As the docstring of the original's reduce has it; dtypes are held by tests/interop.
TEST_F(ReduceTest, MeanOfIntegersDividesTruly) {
  const PerReplica<Tensor> values({at::arange(0, 3), at::arange(3, 6)});
  const Tensor mean = strategy.reduce(ReduceOp::MEAN, values, 0);
  EXPECT_EQ(mean.scalar_type(), at::kDouble);
  EXPECT_EQ(mean.item<double>(), 2.5);
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, values)), ElementsAre(1.5, 2.5, 3.5));
  EXPECT_EQ(strategy.reduce(ReduceOp::MEAN, at::arange(0, 6), 0).item<double>(), 2.5);
  const PerReplica<Tensor> small({at::full({}, 200, at::kByte), at::full({}, 101, at::kByte)});
  const Tensor mean_of_small = strategy.reduce(ReduceOp::MEAN, small);
  EXPECT_EQ(mean_of_small.scalar_type(), at::kFloat);
  EXPECT_EQ(mean_of_small.item<double>(), 150.5);
}

TEST_F(ReduceTest, ASumThatItsDtypeCannotHoldIsAnErrorThatSaysIt) {
  const auto sum = [&](DType dtype, int64_t a, int64_t b) {
    const PerReplica<Tensor> values({at::full({2}, a, dtype), at::full({2}, b, dtype)});
    return strategy.reduce(ReduceOp::SUM, values);
  };
  EXPECT_EQ(sum(at::kByte, 200, 55).scalar_type(), at::kByte);
  EXPECT_THAT(list(sum(at::kByte, 200, 55)), ElementsAre(255, 255));
  EXPECT_THAT(list(sum(at::kChar, -100, -28)), ElementsAre(-128, -128));
  EXPECT_THAT(list(sum(at::kInt, 1, 2)), ElementsAre(3, 3));
  try {
    sum(at::kByte, 200, 101);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("gives 301, which is outside of [0, 255], what uint8"));
  }
  EXPECT_THROW(sum(at::kChar, -100, -29), InvalidArgumentError);
  EXPECT_THROW(sum(at::kShort, 32767, 1), InvalidArgumentError);
  EXPECT_THROW(sum(at::kInt, int64_t{1} << 30, int64_t{1} << 30), InvalidArgumentError);
}

TEST_F(ReduceTest, ASumAlongAnAxisKeepsTheDtype) {
  for (const DType dtype : {at::kByte, at::kInt, at::kLong, at::kFloat}) {
    const PerReplica<Tensor> values({at::full({2}, 3, dtype), at::full({2}, 4, dtype)});
    const Tensor sum = strategy.reduce(ReduceOp::SUM, values, 0);
    EXPECT_EQ(sum.scalar_type(), dtype);
    EXPECT_EQ(sum.item<double>(), 14);
    const Tensor of_one = get_strategy().reduce(ReduceOp::SUM, values.value(0), 0);
    EXPECT_EQ(of_one.scalar_type(), dtype);
  }
  const PerReplica<Tensor> large(
      {at::full({2}, int64_t{1} << 30, at::kInt), at::full({2}, 1, at::kInt)});
  EXPECT_THROW(strategy.reduce(ReduceOp::SUM, large, 0), InvalidArgumentError);
}

TEST_F(ReduceTest, AllReduceOfInt32KeepsTheDtypeAndDoesNotWrap) {
  const auto sum = [&](int64_t each) {
    return strategy.run([&](ReplicaContext& context) {
      return context.all_reduce(ReduceOp::SUM, at::full({2}, each, at::kInt));
    });
  };
  EXPECT_EQ(sum(5).value(1).scalar_type(), at::kInt);
  EXPECT_THAT(list(sum(5).value(1)), ElementsAre(10, 10));
  try {
    sum(int64_t{1} << 30);
    FAIL() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("all_reduce SUM of int32 [2] gives 2147483648"));
  }
}

TEST_F(ReduceTest, MeanOfAPlainValueIsItselfWhateverTheNumberOfReplicas) {
  const Tensor value = at::arange(0, 3, at::kInt);
  for (const Strategy& some : {get_strategy(), Strategy(mirrored(1)), Strategy(strategy)}) {
    const Tensor mean = some.reduce(ReduceOp::MEAN, value);
    EXPECT_EQ(mean.scalar_type(), at::kInt);
    EXPECT_THAT(list(mean), ElementsAre(0, 1, 2));
  }
}

TEST_F(ReduceTest, InAReplicaNamesTheRightCall) {
  try {
    strategy.run([&] { strategy.reduce(ReduceOp::SUM, full); });
    FAIL() << "reduced";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("use ReplicaContext::all_reduce"));
  }
}

TEST_F(ReduceTest, PlainAndMirroredValues) {
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, range(1, 3))), ElementsAre(1, 2));
  EXPECT_THROW(strategy.reduce(ReduceOp::SUM, range(1, 3)), InvalidArgumentError);
  const Mirrored<Tensor> mirrored_value({range(1, 3), range(1, 3)});
  EXPECT_THAT(list(strategy.reduce(ReduceOp::MEAN, mirrored_value)), ElementsAre(1, 2));
  const Strategy plain = get_strategy();
  EXPECT_THAT(list(plain.reduce(ReduceOp::SUM, range(1, 3))), ElementsAre(1, 2));
}

TEST_F(ReduceTest, StructuresLeafByLeaf) {
  const PerReplica<Structure> values({dict({{"a", range(0, 1)}}), dict({{"a", range(5, 6)}})});
  EXPECT_THAT(list(strategy.reduce(ReduceOp::SUM, values)["a"].tensor()), ElementsAre(5));
}

TEST_F(ReduceTest, GatherJoinsInReplicaOrder) {
  const PerReplica<Tensor> columns({range(1, 3).reshape({2, 1}), range(1, 3).reshape({2, 1})});
  EXPECT_THAT(list(strategy.gather(columns, 0)), ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(list(strategy.gather(partial, 0)), ElementsAre(0, 1, 2, 3, 4, 5));
  const MirroredStrategy four = mirrored(4);
  const auto cubes = four.run([] { return at::ones({1, 2, 3}); });
  EXPECT_EQ(four.gather(cubes, 0).sizes(), (at::IntArrayRef{4, 2, 3}));
  EXPECT_EQ(four.gather(cubes, 1).sizes(), (at::IntArrayRef{1, 8, 3}));
  EXPECT_EQ(four.gather(cubes, 2).sizes(), (at::IntArrayRef{1, 2, 12}));
  EXPECT_THROW(four.gather(cubes, 3), InvalidArgumentError);
  EXPECT_THROW(four.gather(cubes, -1), InvalidArgumentError);
}

TEST_F(ReduceTest, GatherOfAPlainValueIsTheValue) {
  EXPECT_THAT(list(strategy.gather(range(1, 4), 0)), ElementsAre(1, 2, 3));
  EXPECT_THROW(strategy.gather(range(1, 4), 1), InvalidArgumentError);
  EXPECT_THROW(strategy.gather(at::ones({}), 0), InvalidArgumentError);
}

TEST_F(ReduceTest, LocalResultsAndValuesFromFunction) {
  const MirroredStrategy four = mirrored(4);
  const auto ids = four.experimental_distribute_values_from_function(
      [](const ValueContext& context) { return context.replica_id_in_sync_group; });
  EXPECT_THAT(four.experimental_local_results(ids), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(four.experimental_local_results(range(0, 2)).size(), 1U);
  std::ostringstream out;
  out << ValueContext{2, 4};
  EXPECT_EQ(out.str(), "tf.distribute.ValueContext(replica id 2,  total replicas in sync: 4)");
}

}  // namespace
}  // namespace cohort::distribute
