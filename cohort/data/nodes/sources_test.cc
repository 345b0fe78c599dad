// range, from_tensors, from_tensor_slices.
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Range, CountsUpAndDown) {
  EXPECT_THAT(ints(Dataset::range(4)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ints(Dataset::range(2, 9, 3)), ElementsAre(2, 5, 8));
  EXPECT_THAT(ints(Dataset::range(3, 0, -2)), ElementsAre(3, 1));
  EXPECT_THAT(ints(Dataset::range(0)), IsEmpty());
  EXPECT_THAT(ints(Dataset::range(3, 1)), IsEmpty());
  EXPECT_THROW(Dataset::range(0, 1, 0), InvalidArgumentError);
}

TEST(Range, KnowsItsCardinality) {
  EXPECT_EQ(Dataset::range(4).cardinality(), 4);
  EXPECT_EQ(Dataset::range(2, 9, 3).cardinality(), 3);
  EXPECT_EQ(Dataset::range(2, 8, 3).cardinality(), 2);
  EXPECT_EQ(Dataset::range(3, 0, -2).cardinality(), 2);
  EXPECT_EQ(Dataset::range(-5).cardinality(), 0);
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Dataset::range(kMin, kMax, kMax).cardinality(), 3);
}

TEST(Range, IsOfScalars) {
  EXPECT_EQ(Dataset::range(4).element_spec(), TensorSpec(std::vector<int64_t>{}, int64));
  EXPECT_EQ(Dataset::range(4).iterator().get_next().tensor().dim(), 0);
}

TEST(FromTensors, IsOneElement) {
  const Structure element = tuple(at::zeros({2, 3}), StringTensor({"a", "b"}));
  const Dataset dataset = Dataset::from_tensors(element);
  EXPECT_EQ(dataset.cardinality(), 1);
  EXPECT_EQ(dataset.element_spec(), StructureSpec::of(element));
  EXPECT_EQ(texts(dataset).size(), 1u);
  const Tensor x = at::zeros({3}).requires_grad_();
  EXPECT_FALSE(Dataset::from_tensors(x).iterator().get_next().tensor().requires_grad());
}

TEST(FromTensorSlices, GivesRows) {
  const Tensor x = at::arange(6, at::kLong).view({3, 2});
  const Dataset dataset =
      Dataset::from_tensor_slices(dict({{"x", x}, {"s", StringTensor({"a", "b", "c"})}}));
  EXPECT_EQ(dataset.cardinality(), 3);
  EXPECT_EQ(internal::str(dataset.element_spec()),
            internal::str(StructureSpec::make_dict(
                {{"x", TensorSpec({{2}}, int64)}, {"s", TensorSpec::strings({{}})}})));
  auto iterator = dataset.iterator();
  iterator.get_next();
  const Structure second = iterator.get_next();
  EXPECT_EQ(second["x"].tensor().data_ptr<int64_t>(), x.data_ptr<int64_t>() + 2);  // a view
  EXPECT_EQ(second["s"].strings().item(), "b");
  EXPECT_TRUE(iterator.next().has_value());
  EXPECT_FALSE(iterator.next().has_value());
  EXPECT_FALSE(iterator.next().has_value());
}

TEST(FromTensorSlices, RefusesLeavesOfDifferentLength) {
  const std::string text = thrown<InvalidArgumentError>([] {
    Dataset::from_tensor_slices(dict({{"x", at::zeros({3, 2})}, {"y", at::zeros({4})}}));
  });
  EXPECT_THAT(text, HasSubstr("['y'] has 4 rows"));
  EXPECT_THAT(text, HasSubstr("['x'] has 3"));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [] { Dataset::from_tensor_slices(tuple(at::zeros({3}), at::zeros({}))); }),
              HasSubstr("[1] is a scalar"));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [] { Dataset::from_tensor_slices(tuple(at::zeros({2}), Tensor())); }),
              HasSubstr("[1] is an undefined tensor"));
  EXPECT_THROW(Dataset::from_tensor_slices(Structure()), InvalidArgumentError);
}

TEST(FromTensorSlices, NeverRecordsForGradients) {
  const Tensor x = at::zeros({3}).requires_grad_();
  EXPECT_FALSE(Dataset::from_tensor_slices(x).iterator().get_next().tensor().requires_grad());
}

// Autograd keeps a record of each view, which costs as much as the row.
TEST(FromTensorSlices, ElementsAreNoViewsToAutograd) {
  const Tensor x = at::zeros({2, 3});
  const Dataset slices = Dataset::from_tensor_slices(x);
  for (const Dataset& dataset : {slices, slices.batch(2).unbatch(), slices.shuffle(2)}) {
    for (const Structure& element : dataset) EXPECT_FALSE(element.tensor().is_view());
  }
  slices.iterator().get_next().tensor().fill_(1);
  EXPECT_EQ(x[0].sum().item<float>(), 3);
}

TEST(FromTensorSlices, BatchesAreViewsThroughTakeSkipAndShard) {
  const Tensor x = at::arange(100, at::kLong);
  const auto data = [&](const Dataset& dataset) {
    return dataset.batch(4).iterator().get_next().tensor().data_ptr<int64_t>() -
           x.data_ptr<int64_t>();
  };
  const Dataset rows = Dataset::from_tensor_slices(x);
  EXPECT_EQ(data(rows), 0);
  EXPECT_EQ(data(rows.skip(10)), 10);
  EXPECT_EQ(data(rows.take(50).skip(3)), 3);
  EXPECT_EQ(data(rows.skip(10).shard(3, 2)), 12);
  EXPECT_EQ(rows.shard(3, 2).batch(4).iterator().get_next().tensor().stride(0), 3);
}

}  // namespace
}  // namespace cohort::data
