#include "cohort/distribute/values/values.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/distribute/testing_errors.h"

namespace cohort::distribute {
namespace {

Tensor one_number(int64_t value) { return at::full({1}, value, at::kLong); }
template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(ReduceOp, IsReadInAnyCase) {
  EXPECT_EQ(parse_reduce_op("sum"), ReduceOp::SUM);
  EXPECT_EQ(parse_reduce_op("Mean"), ReduceOp::MEAN);
  EXPECT_THROW(parse_reduce_op("max"), InvalidArgumentError);
  EXPECT_EQ(reduce_op_name(ReduceOp::MEAN), "MEAN");
}

TEST(PerReplica, PrintsOneLineAComponent) {
  EXPECT_EQ(printed(PerReplica<Tensor>({one_number(0), one_number(2)})),
            "PerReplica:{\n  0: [0],\n  1: [2]\n}");
  EXPECT_EQ(printed(PerReplica<int>({3, 4})), "PerReplica:{\n  0: 3,\n  1: 4\n}");
}

TEST(PerReplica, WithoutComponentsPrintsThatThereAreNone) {
  EXPECT_EQ(printed(PerReplica<Tensor>()), "PerReplica:{}");
  EXPECT_EQ(printed(PerReplica<Structure>()), "PerReplica:{}");
  EXPECT_EQ(printed(PerReplica<int>()), "PerReplica:{}");
  EXPECT_EQ(printed(std::optional(PerReplica<Structure>({tuple(1, 2)}))), "(1, 2)");
}

TEST(PerReplica, OfATuplePrintsAsATupleOfPerReplica) {
  const PerReplica<Structure> value(
      {tuple(one_number(0), one_number(1)), tuple(one_number(2), one_number(3))});
  EXPECT_EQ(printed(value),
            "(PerReplica:{\n  0: [0],\n  1: [2]\n}, PerReplica:{\n  0: [1],\n  1: [3]\n})");
  const PerReplica<Structure> named({dict({{"a", one_number(0)}}), dict({{"a", one_number(2)}})});
  EXPECT_EQ(printed(named), "{'a': PerReplica:{\n  0: [0],\n  1: [2]\n}}");
}

TEST(PerReplica, WithOneComponentPrintsPlain) {
  EXPECT_EQ(printed(PerReplica<Tensor>({one_number(7)})), "[7]");
  EXPECT_EQ(printed(PerReplica<Structure>({tuple(one_number(1), one_number(2))})), "([1], [2])");
}

TEST(PerReplica, ChecksItsIndexAndItsNumber) {
  const PerReplica<int> two({1, 2});
  EXPECT_THROW(two.value(2), OutOfRangeError);
  EXPECT_THROW(two.item(), FailedPreconditionError);
  EXPECT_EQ(PerReplica<int>({5}).item(), 5);
}

TEST(PerReplica, MembersByIndexAndKey) {
  const PerReplica<Structure> named({dict({{"x", one_number(1)}, {"s", StringTensor({"a"})}}),
                                     dict({{"x", one_number(2)}, {"s", StringTensor({"b"})}})});
  EXPECT_EQ(named["x"].value(1).item<int64_t>(), 2);
  EXPECT_EQ(named[0].value(0).item<int64_t>(), 1);
  EXPECT_EQ(named.member(1).value(1).strings()[0], "b");
  EXPECT_THROW(named[1], InvalidArgumentError);
  EXPECT_THROW(named["y"], NotFoundError);
}

TEST(PerReplica, MembersThatAreNoTensorsAreHadByMember) {
  const auto component = [](const char* word, int64_t value) {
    return dict({{"s", StringTensor({word})},
                 {"d", dict({{"x", one_number(value)}})},
                 {"t", tuple(one_number(value), one_number(value))}});
  };
  const PerReplica<Structure> batch({component("a", 1), component("b", 2)});
  EXPECT_EQ(batch.member("s").value(1).strings()[0], "b");
  EXPECT_EQ(batch.member("d")["x"].value(1).item<int64_t>(), 2);
  EXPECT_THROW(batch.member("y"), NotFoundError);
  EXPECT_EQ(refused([&] { batch["s"]; }),
            "batch[\"s\"] gives tensors of numbers, but this is a tensor of strings; use "
            "batch.member(\"s\")");
  EXPECT_EQ(refused([&] { batch["d"]; }),
            "batch[\"d\"] gives tensors of numbers, but this is a dict; use batch.member(\"d\")");
  EXPECT_EQ(refused([&] { batch[2]; }),
            "batch[2] gives tensors of numbers, but this is a tuple; use batch.member(2)");
}

TEST(PerReplica, BindsOnlyToTuplesOfTwo) {
  const PerReplica<Structure> three({tuple(1, 2, 3)});
  EXPECT_THROW(([&] { auto [a, b] = three; }()), InvalidArgumentError);
}

TEST(PerReplicaSpec, PrintsASpecForEachReplica) {
  const StructureSpec spec(TensorSpec(std::vector<int64_t>{kUnknownDim, 2}, float32));
  EXPECT_EQ(printed(PerReplicaSpec{spec, 2}),
            "PerReplicaSpec(" + printed(spec) + ", " + printed(spec) + ")");
  EXPECT_EQ(printed(PerReplicaSpec{spec, 1}), printed(spec));
}

}  // namespace
}  // namespace cohort::distribute
