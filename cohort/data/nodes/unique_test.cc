// unique, get_single_element, from_list and counter.
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <limits>

#include "cohort/core/testing_errors.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using internal::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Unique, LeavesOutWhatHasCome) {
  const Tensor numbers = at::tensor(std::vector<int64_t>{1, 37, 2, 37, 2, 1});
  for (const Dataset& input :
       {Dataset::from_tensor_slices(numbers), in_blocks(Dataset::from_tensor_slices(numbers))}) {
    EXPECT_THAT(ints(input.unique()), ElementsAre(1, 37, 2));
    EXPECT_THAT(ints(input.unique().repeat(2)), ElementsAre(1, 37, 2, 1, 37, 2));
  }
  EXPECT_EQ(texts(Dataset::from_tensor_slices(StringTensor({"a", "b", "a"})).unique()).size(), 2u);
  // Tensors as a whole: the same numbers in another shape are another element.
  EXPECT_EQ(texts(Dataset::from_list(
                      {at::ones({2}, at::kInt), at::ones({2}, at::kInt), at::ones({3}, at::kInt)})
                      .unique())
                .size(),
            2u);
  EXPECT_EQ(Dataset::range(3).unique().cardinality(), kUnknownCardinality);
  EXPECT_EQ(Dataset::range(0).unique().cardinality(), 0);
}

TEST(Unique, Errors) {
  expect_error<InvalidArgumentError>([] { Dataset::from_tensor_slices(at::ones({3})).unique(); },
                                     "unique: elements are TensorSpec(shape=(), dtype=float32)");
  const auto all =
      outcomes(Dataset::range(2)
                   .map([](int64_t x) { return x == 0 ? at::ones({}) : at::ones({}, at::kLong); })
                   .unique());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0], HasSubstr("unique: element 0 is"));
}

TEST(Unique, Resumes) {
  expect_resumable([] {
    return Dataset::range(60).map([](int64_t x) { return x * x % 23; }).unique().repeat(2);
  });
}

// Beyond the first chunks of what has come.
TEST(Unique, ResumesAfterMany) {
  const auto make = [] {
    return Dataset::range(20'000).map([](int64_t x) { return x * 7919 % 9973; }).unique();
  };
  auto iterator = make().iterator();
  for (int i = 0; i < 9000; ++i) iterator.get_next();
  auto restored = make().iterator();
  restored.restore(IteratorState::parse(iterator.state().serialize()));
  const auto left = ints(restored);
  EXPECT_EQ(left.size(), 973u);
  EXPECT_EQ(left, ints(iterator));
}

TEST(GetSingleElement, IsTheOnlyOne) {
  EXPECT_EQ(Dataset::range(5, 6).get_single_element().tensor().item<int64_t>(), 5);
  expect_error<InvalidArgumentError>([] { Dataset::range(0).get_single_element(); },
                                     "the dataset is empty");
  expect_error<InvalidArgumentError>([] { Dataset::range(2).get_single_element(); },
                                     "more than one element");
}

TEST(FromList, GivesElementsOfAnyShape) {
  const Dataset list = Dataset::from_list({tuple(at::zeros({2}), StringTensor::scalar("a")),
                                           tuple(at::ones({3}), StringTensor::scalar("b"))});
  EXPECT_EQ(list.cardinality(), 2);
  const std::vector<std::string> all = texts(list);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(texts(list.skip(1)), std::vector<std::string>{all[1]});
  EXPECT_THAT(list.explain(), HasSubstr("from_list(elements=2): (TensorSpec(shape=(None,), "));
  EXPECT_EQ(texts(list.shuffle(2, {.seed = 1}).padded_batch(2)).size(), 1u);
  expect_resumable([&] { return list.repeat(2); });
}

TEST(FromList, Errors) {
  expect_error<InvalidArgumentError>([] { Dataset::from_list({}); }, "there are no elements");
  expect_error<InvalidArgumentError>(
      [] {
        Dataset::from_list({at::zeros({2}), at::zeros({2}, at::kLong)});
      },
      "from_list: element 1 is");
}

TEST(Counter, CountsWithoutAnEnd) {
  EXPECT_THAT(ints(Dataset::counter().take(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(ints(Dataset::counter(10, -3).take(3)), ElementsAre(10, 7, 4));
  EXPECT_THAT(ints(Dataset::counter(2, 0).take(2)), ElementsAre(2, 2));
  EXPECT_THAT(ints(Dataset::counter(1).skip(1'000'000).batch(2).take(1)),
              ElementsAre(1'000'001, 1'000'002));
  EXPECT_EQ(Dataset::counter().cardinality(), kInfiniteCardinality);
  const Dataset floats = Dataset::counter(1, 2, float32);
  EXPECT_EQ(floats.element_spec(), StructureSpec(TensorSpec(std::vector<int64_t>{}, float32)));
  EXPECT_EQ(floats.take(2).batch(2).get_single_element().tensor().sum().item<float>(), 4);
  expect_resumable([] { return Dataset::counter(5, 2).take(6); });
}

}  // namespace
}  // namespace cohort::data
