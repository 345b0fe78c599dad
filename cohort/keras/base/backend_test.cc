#include "cohort/keras/base/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/keras/base/zip.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras {
namespace {

using ::testing::HasSubstr;

TEST(Backend, SnakeCaseIsThatOfKeras) {
  using internal::to_snake_case;
  EXPECT_EQ(to_snake_case("Dense"), "dense");
  EXPECT_EQ(to_snake_case("Conv2D"), "conv2d");
  EXPECT_EQ(to_snake_case("MaxPooling2D"), "max_pooling2d");
  EXPECT_EQ(to_snake_case("GlobalAveragePooling2D"), "global_average_pooling2d");
  EXPECT_EQ(to_snake_case("MyLayer"), "my_layer");
}

TEST(Backend, NamesAreNumberedUntilTheSessionIsCleared) {
  backend::clear_session();
  EXPECT_EQ(layers::Dense(1).name(), "dense");
  EXPECT_EQ(layers::Dense(1).name(), "dense_1");
  EXPECT_EQ(layers::Conv2D(1, 1).name(), "conv2d");
  EXPECT_EQ(layers::Dense(1, {.name = "mine"}).name(), "mine");
  EXPECT_EQ(layers::Dense(1).name(), "dense_2");
  backend::clear_session();
  EXPECT_EQ(layers::Dense(1).name(), "dense");
}

TEST(Backend, FloatxIsTheDtypeOfNewLayers) {
  EXPECT_EQ(backend::floatx(), "float32");
  {
    const Float64 float64_layers;
    EXPECT_EQ(backend::floatx(), "float64");
    EXPECT_EQ(layers::Dense(1)->dtype(), float64);
    EXPECT_EQ(layers::Dense(1, {.dtype = float32})->dtype(), float32);
  }
  EXPECT_EQ(layers::Dense(1)->dtype(), float32);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { backend::set_floatx("int32"); }),
              HasSubstr("'int32'"));
}

TEST(Zip, PairsListsOfOneLength) {
  const auto pairs = zip(std::vector<int>{1, 2}, std::vector<std::string>{"a", "b"});
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[1], std::make_pair(2, std::string("b")));
  const std::string last = "b";
  EXPECT_EQ(zip(std::vector<int>{1, 2}, {std::string("a"), last}), pairs);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { zip(std::vector<int>{1}, std::vector<int>{}); }),
              HasSubstr("1 and 0"));
}

}  // namespace
}  // namespace cohort::keras
