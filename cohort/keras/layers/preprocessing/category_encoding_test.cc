#include "cohort/keras/layers/preprocessing/category_encoding.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::layers {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

Tensor integers(const std::vector<double>& values, const std::vector<int64_t>& shape) {
  return numbers(values, shape, int64);
}

// The examples of Keras's documentation.
TEST(CategoryEncoding, MakesTheVectorsOfKeras) {
  const Tensor hot = CategoryEncoding(4, {.output_mode = "one_hot"})(integers({3, 2, 0, 1}, {4}));
  EXPECT_EQ(hot.scalar_type(), float32);
  EXPECT_THAT(elements(hot), ElementsAre(0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0));
  const Tensor rows = integers({0, 1, 0, 0, 1, 2, 3, 1}, {4, 2});
  EXPECT_THAT(elements(CategoryEncoding(4)(rows)),
              ElementsAre(1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1));
  const CategoryEncoding count(4, {.output_mode = "count", .dtype = float64});
  EXPECT_THAT(elements(count(rows)), ElementsAre(1, 1, 0, 0, 2, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1));
  const Tensor weights = numbers({.1, .2, .1, .1, .2, .3, .4, .2}, {4, 2}, float64);
  EXPECT_THAT(elements(count(tuple(rows, weights)).tensor()),
              ElementsAre(.1, .2, 0, 0, .2, 0, 0, 0, 0, .2, .3, 0, 0, .2, 0, .4));
}

TEST(CategoryEncoding, WeightsCountInTheDtypeOfTheOutput) {
  const Structure inputs = tuple(integers({0, 1, 1}, {3}), numbers({.1, .2, .4}));
  const auto sums = [&](DType dtype) {
    return CategoryEncoding(3, {.output_mode = "count", .dtype = dtype})(inputs).tensor();
  };
  EXPECT_THAT(elements(sums(float32)), ElementsAre(0.1f, 0.2f + 0.4f, 0));
  EXPECT_EQ(sums(int64).scalar_type(), int64);
  EXPECT_THAT(elements(sums(int64)), ElementsAre(0, 0, 0));
}

TEST(CategoryEncoding, TakesAnyShapeOfTwoDimensionsAtMost) {
  const CategoryEncoding multi(4);
  EXPECT_THAT(multi(integers({3}, {})).sizes(), ElementsAre(4));
  EXPECT_THAT(multi(integers({3, 1}, {2})).sizes(), ElementsAre(4));
  EXPECT_THAT(multi(at::empty({0, 2}, int64)).sizes(), ElementsAre(0, 4));
  EXPECT_THAT(elements(multi(at::empty({0}, int64))), ElementsAre(0, 0, 0, 0));
  EXPECT_THROW(multi(integers({1}, {1, 1, 1})), InvalidArgumentError);
  const CategoryEncoding hot(4, {.output_mode = "one_hot"});
  EXPECT_THAT(hot(integers({3, 1}, {2, 1})).sizes(), ElementsAre(2, 4));
  EXPECT_THROW(hot(integers({3, 1}, {1, 2})), InvalidArgumentError);
}

TEST(CategoryEncoding, RoundsTowardsZeroAsKeras) {
  EXPECT_THAT(elements(CategoryEncoding(4)(numbers({1.7, 2, 3.99}))), ElementsAre(0, 1, 1, 1));
}

TEST(CategoryEncoding, OfRaggedTensors) {
  const Structure rows = RaggedTensor::from_row_lengths(integers({1, 1, 3}, {3}), {2, 0, 1});
  EXPECT_THAT(elements(CategoryEncoding(4)(rows).tensor()),
              ElementsAre(0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1));
  const Structure weights = RaggedTensor::from_row_lengths(numbers({1, .5, 3}), {2, 0, 1});
  const CategoryEncoding count(4, {.output_mode = "count"});
  EXPECT_THAT(elements(count(tuple(rows, weights)).tensor()),
              ElementsAre(0, 1.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3));
  const Structure others = RaggedTensor::from_row_lengths(numbers({1, .5, 3}), {1, 1, 1});
  EXPECT_THROW(count(tuple(rows, others)), InvalidArgumentError);
}

TEST(CategoryEncoding, RefusesNumbersOutsideOfItsRange) {
  const CategoryEncoding layer(4, {.name = "c"});
  const auto refused = [&](const Structure& input) {
    return thrown<InvalidArgumentError>([&] { layer(input); });
  };
  EXPECT_THAT(refused(integers({0, 4}, {2})),
              AllOf(HasSubstr("'c'"), HasSubstr("num_tokens - 1, which is 3, but got 4")));
  EXPECT_THAT(refused(integers({-1, 0}, {2})), HasSubstr("-1"));
  EXPECT_THAT(refused(numbers({1, -0.5})), HasSubstr("-0.5"));
  const double inf = std::numeric_limits<double>::infinity();
  for (const double value : {inf, -inf, std::numeric_limits<double>::quiet_NaN()}) {
    refused(numbers({value}));
  }
  EXPECT_THAT(refused(at::ones({2}, at::kBool)), HasSubstr("bool"));
  EXPECT_THAT(refused(StringTensor({"a"})), HasSubstr("string"));
}

TEST(CategoryEncoding, RefusesWhatIsWrong) {
  EXPECT_THROW(CategoryEncoding(0), InvalidArgumentError);
  for (const char* mode : {"int", "tf_idf", "hot"}) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { CategoryEncoding(4, {.output_mode = mode}); }),
                HasSubstr("'one_hot', 'multi_hot' and 'count'"));
  }
  const Tensor ids = integers({0, 1}, {2});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { CategoryEncoding(4)(tuple(ids, ids)); }),
              HasSubstr("'count'"));
  const CategoryEncoding count(4, {.output_mode = "count"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { count(tuple(ids, at::ones({1}))); }),
              HasSubstr("the shape of the integers"));
  EXPECT_THROW(count(tuple(ids, StringTensor({"a", "b"}))), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras::layers
