#include "cohort/keras/layers/convolution/pooling2d.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/layers/convolution/pooling1d.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor counting_image(int64_t height, int64_t width) {
  return at::arange(1, height * width + 1, at::dtype(at::kFloat)).reshape({1, height, width, 1});
}

TEST(MaxPooling2D, TakesTheLargestOfEachWindow) {
  EXPECT_THAT(elements(MaxPooling2D()(counting_image(4, 4))), ElementsAre(6, 8, 14, 16));
  EXPECT_THAT(elements(MaxPooling2D({1, 2})(counting_image(2, 4))), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(elements(MaxPooling2D(2, {.strides = 1})(counting_image(3, 3))),
              ElementsAre(5, 6, 8, 9));
}

TEST(MaxPooling2D, ValidDropsTheRestAndSameKeepsIt) {
  EXPECT_THAT(elements(MaxPooling2D()(counting_image(3, 3))), ElementsAre(5));
  EXPECT_THAT(elements(MaxPooling2D(2, {.padding = "same"})(counting_image(3, 3))),
              ElementsAre(5, 6, 8, 9));
}

TEST(MaxPooling2D, PaddingNeverWins) {
  const Tensor negative = counting_image(3, 3) - 100;
  EXPECT_THAT(elements(MaxPooling2D(2, {.padding = "same"})(negative)),
              ElementsAre(-95, -94, -92, -91));
  EXPECT_THAT(elements(MaxPooling2D(3, {.strides = 3, .padding = "same"})(negative)),
              ElementsAre(-91));
}

TEST(MaxPooling2D, SaysWhichImageIsTooSmall) {
  const MaxPooling2D layer({2, 3}, {.name = "shrinks"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({4, 5, 2, 7}));
              }),
              AllOf(HasSubstr("layer 'shrinks'"), HasSubstr("at least [2,3]"),
                    HasSubstr("float32 [4,5,2,7]"), HasSubstr("\"same\"")));
  EXPECT_THAT(MaxPooling2D({2, 3}, {.padding = "same"})(at::ones({4, 5, 2, 7})).sizes(),
              ElementsAre(4, 3, 1, 7));
}

TEST(MaxPooling2D, EmptyBatch) {
  EXPECT_THAT(MaxPooling2D()(at::zeros({0, 4, 4, 2})).sizes(), ElementsAre(0, 2, 2, 2));
}

TEST(MaxPooling2D, OutputIsContiguousInTheOrderOfKeras) {
  EXPECT_TRUE(MaxPooling2D()(at::ones({2, 4, 4, 3})).is_contiguous());
}

TEST(AveragePooling2D, AveragesPixelsAndNeverPadding) {
  EXPECT_THAT(elements(AveragePooling2D()(counting_image(4, 4))),
              ElementsAre(3.5, 5.5, 11.5, 13.5));
  EXPECT_THAT(elements(AveragePooling2D(2, {.padding = "same"})(counting_image(3, 3))),
              ElementsAre(3, 4.5, 7.5, 9));
  EXPECT_THAT(
      elements(AveragePooling2D(3, {.strides = 1, .padding = "same"})(counting_image(2, 2))),
      ElementsAre(2.5, 2.5, 2.5, 2.5));
}

TEST(GlobalAveragePooling2D, LeavesTheChannels) {
  const Tensor y = GlobalAveragePooling2D()(numbers({1, 10, 3, 30}, {1, 2, 1, 2}));
  EXPECT_THAT(y.sizes(), ElementsAre(1, 2));
  EXPECT_THAT(elements(y), ElementsAre(2, 20));
}

TEST(GlobalPooling, KeepsDimensionsWhereAskedTo) {
  const Tensor image = numbers({1, 10, 3, 30}, {1, 2, 1, 2});
  const Tensor largest = GlobalMaxPooling2D({.keepdims = true})(image);
  EXPECT_THAT(largest.sizes(), ElementsAre(1, 1, 1, 2));
  EXPECT_THAT(elements(largest), ElementsAre(3, 30));
  EXPECT_THAT(GlobalAveragePooling1D({.keepdims = true})(image.squeeze(2)).sizes(),
              ElementsAre(1, 1, 2));
}

TEST(Pooling2D, ErrorsNameTheLayer) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                MaxPooling2D(2, {.name = "half"})(at::ones({4, 4}));
              }),
              AllOf(HasSubstr("'half'"), HasSubstr("[4,4]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MaxPooling2D(0); }), HasSubstr("pool_size"));
}

}  // namespace
}  // namespace cohort::keras::layers
