#include "cohort/keras/layers/convolution/conv2d_transpose.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/layers/convolution/conv2d.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Conv2DTranspose, SpreadsEachPixelOverAWindow) {
  const Conv2DTranspose layer(1, {1, 2}, {.strides = {1, 2}});
  const Tensor row = numbers({1, 2, 3}, {1, 1, 3, 1});
  layer(row);
  layer.set_weights({numbers({1, 10}, {1, 2, 1, 1}), numbers({0})});
  EXPECT_THAT(elements(layer(row)), ElementsAre(1, 10, 2, 20, 3, 30));
}

TEST(Conv2DTranspose, PixelsBeyondTheWindowsHaveTheBiasAlone) {
  const Conv2DTranspose layer(1, 1, {.strides = {1, 3}});
  const Tensor row = numbers({1, 2}, {1, 1, 2, 1});
  layer(row);
  layer.set_weights({numbers({10}, {1, 1, 1, 1}), numbers({1})});
  EXPECT_THAT(elements(layer(row)), ElementsAre(11, 1, 1, 21, 1, 1));
}

// <conv(x), y> = <x, conv_transpose(y)>, with the kernel of the one as that of the other.
TEST(Conv2DTranspose, IsTheTransposeOfAConvolution) {
  const Float64 float64_layers;
  for (const char* padding : {"valid", "same"}) {
    for (const int64_t stride : {1, 2, 3}) {
      const Conv2D conv(4, {3, 2}, {.strides = stride, .padding = padding, .use_bias = false});
      const Conv2DTranspose transpose(5, {3, 2},
                                      {.strides = stride, .padding = padding, .use_bias = false});
      const Tensor y = random::normal({2, 3, 4, 4}, {.dtype = float64});
      const Tensor spread = transpose(y);
      const Tensor x = random::normal(spread.sizes().vec(), {.dtype = float64});
      ASSERT_THAT(conv(x).sizes(), ElementsAre(2, 3, 4, 4)) << padding << stride;
      transpose.set_weights(conv.get_weights());
      EXPECT_NEAR((conv(x) * y).sum().item<double>(), (x * transpose(y)).sum().item<double>(), 1e-9)
          << padding << stride;
    }
  }
}

TEST(Conv2DTranspose, OutputPaddingDecidesTheSize) {
  const Tensor row = numbers({1, 2}, {1, 1, 2, 1});
  const auto spread = [&](const Conv2DTransposeOptions& options) {
    const Conv2DTranspose layer(1, {1, 3}, options);
    layer(row);
    layer.set_weights({numbers({1, 10, 100}, {1, 3, 1, 1}), numbers({0})});
    return elements(layer(row));
  };
  // Of the windows 1 10 100 and 2 20 200, three pixels apart.
  EXPECT_THAT(spread({.strides = {1, 3}, .output_padding = Size2D(0, 0)}),
              ElementsAre(1, 10, 100, 2, 20, 200));
  EXPECT_THAT(spread({.strides = {1, 3}, .output_padding = Size2D(0, 2)}),
              ElementsAre(1, 10, 100, 2, 20, 200, 0, 0));
  EXPECT_THAT(spread({.strides = {1, 3}, .padding = "same", .output_padding = Size2D(0, 0)}),
              ElementsAre(10, 100, 2, 20));
  EXPECT_THAT(spread({.strides = {1, 3}, .padding = "same", .output_padding = Size2D(0, 2)}),
              ElementsAre(1, 10, 100, 2, 20, 200));
}

TEST(Conv2DTranspose, TakesEmptyBatches) {
  EXPECT_THAT(Conv2DTranspose(3, 2, {.strides = 2})(at::zeros({0, 4, 5, 2})).sizes(),
              ElementsAre(0, 8, 10, 3));
}

TEST(Conv2DTranspose, SaysWhatDoesNotFit) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2DTranspose(0, 3); }),
              HasSubstr("Conv2DTranspose: filters is 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Conv2DTranspose(1, 3, {.strides = {2, 3}, .output_padding = 2});
              }),
              HasSubstr("output_padding is (2, 2); it must be at least 0 and below the strides, "
                        "(2, 3)"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2DTranspose(1, 3, {.strides = 0}); }),
              HasSubstr("Conv2DTranspose: strides"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2DTranspose(1, 3, {.padding = "full"}); }),
              HasSubstr("'full'"));
  const Conv2DTranspose layer(1, 3, {.name = "up"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({1, 4, 4}));
              }),
              AllOf(HasSubstr("'up'"), HasSubstr("rank 4")));
  layer(at::ones({1, 4, 4, 2}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({1, 4, 4, 3}));
              }),
              HasSubstr("last dimension is 2"));
}

}  // namespace
}  // namespace cohort::keras::layers
