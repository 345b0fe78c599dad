#include "cohort/keras/layers/convolution/conv2d.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/keras/layers/convolution/conv1d.h"
#include "cohort/keras/layers/convolution/conv2d_transpose.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A square image of one channel with the values 1, 2, 3, ...
Tensor counting_image(int64_t size) {
  return at::arange(1, size * size + 1, at::dtype(at::kFloat)).reshape({1, size, size, 1});
}

Conv2D conv_of_ones(Size2D kernel_size, Conv2DOptions options) {
  options.kernel_initializer = "ones";
  return Conv2D(1, kernel_size, options);
}

TEST(Conv2D, SlidesItsKernelOverTheImage) {
  Conv2D conv(1, 2);
  conv(counting_image(3));
  conv.set_weights({numbers({1, 2, 3, 4}, {2, 2, 1, 1}), numbers({0.5})});
  const Tensor y = conv(counting_image(3));
  EXPECT_THAT(y.sizes(), ElementsAre(1, 2, 2, 1));
  // 1*1 + 2*2 + 4*3 + 5*4 = 37, and so on.
  EXPECT_THAT(elements(y), ElementsAre(37.5, 47.5, 67.5, 77.5));
}

TEST(Conv2D, KernelIsHeightWidthInOut) {
  Conv2D conv(3, 1, {.use_bias = false});
  const Tensor pixel = numbers({10, 1}, {1, 1, 1, 2});
  conv(pixel);
  ASSERT_EQ(conv.variables().size(), 1u);
  EXPECT_THAT(conv.variables()[0].shape(), ElementsAre(1, 1, 2, 3));
  conv.set_weights({numbers({1, 2, 3, 4, 5, 6}, {1, 1, 2, 3})});
  EXPECT_THAT(elements(conv(pixel)), ElementsAre(14, 25, 36));
}

TEST(Conv2D, SamePaddingPutsTheOddPixelBelowAndToTheRight) {
  const Tensor y = conv_of_ones(3, {.strides = 2, .padding = "same"})(counting_image(4));
  EXPECT_THAT(y.sizes(), ElementsAre(1, 2, 2, 1));
  EXPECT_THAT(elements(y), ElementsAre(54, 45, 72, 54));
}

TEST(Conv2D, SamePaddingKeepsTheSizeAtStrideOne) {
  const Tensor y = conv_of_ones(3, {.padding = "SAME"})(counting_image(3));
  EXPECT_THAT(elements(y), ElementsAre(12, 21, 16, 27, 45, 33, 24, 39, 28));
  // An even kernel: nothing above and to the left.
  EXPECT_THAT(elements(conv_of_ones(2, {.padding = "same"})(counting_image(2))),
              ElementsAre(10, 6, 7, 4));
}

TEST(Conv2D, StridesAndDilationMayDifferByAxis) {
  EXPECT_THAT(elements(conv_of_ones(1, {.strides = Size2D(2, 1)})(counting_image(3))),
              ElementsAre(1, 2, 3, 7, 8, 9));
  EXPECT_THAT(elements(conv_of_ones(2, {.dilation_rate = 2})(counting_image(3))),
              ElementsAre(1 + 3 + 7 + 9));
  EXPECT_THAT(conv_of_ones({1, 3}, {})(counting_image(3)).sizes(), ElementsAre(1, 3, 1, 1));
}

// As Keras: a model that has them could not go there.
TEST(Conv2D, StridesAndDilationExcludeEachOther) {
  const auto both = HasSubstr("only one of them may be above 1");
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { Conv2D(1, 2, {.strides = 2, .dilation_rate = 2}); }),
      AllOf(HasSubstr("Conv2D: strides is (2, 2)"), both));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [] { Conv2D(1, 2, {.strides = Size2D(1, 2), .dilation_rate = Size2D(3, 1)}); }),
              both);
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { Conv1D(1, 2, {.strides = 2, .dilation_rate = 2}); }),
      AllOf(HasSubstr("Conv1D"), both));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [] { Conv2DTranspose(1, 2, {.strides = 2, .dilation_rate = 2}); }),
              AllOf(HasSubstr("Conv2DTranspose"), both));
}

TEST(Conv2D, OutputsAreContiguousInTheOrderOfKeras) {
  const Tensor y = Conv2D(4, 3)(at::ones({2, 6, 6, 3}));
  EXPECT_TRUE(y.is_contiguous());
}

TEST(Conv2D, TransposedInputGivesTheSameNumbers) {
  const Tensor image = counting_image(4);
  const Tensor turned = image.transpose(1, 2).contiguous().transpose(1, 2);
  const Conv2D conv(2, 3);
  EXPECT_EQ(elements(conv(image)), elements(conv(turned)));
}

TEST(Conv2D, EmptyBatchGivesAnEmptyBatchAndZeroGradients) {
  for (const DType dtype : {float32, float64}) {
    const Conv2D conv(2, 3, {.dtype = dtype});
    conv(at::ones({1, 5, 5, 1}, at::dtype(dtype)));
    GradientTape tape;
    const Tensor y = conv(at::zeros({0, 5, 5, 1}, at::dtype(dtype)));
    EXPECT_THAT(y.sizes(), ElementsAre(0, 3, 3, 2));
    for (const Tensor& gradient : tape.gradient(y.sum(), conv.trainable_variables())) {
      ASSERT_TRUE(gradient.defined());
      EXPECT_THAT(elements(gradient), Each(0));
    }
  }
}

TEST(Conv2D, WindowsOfOnePixelWithGapsTakeEverySoManyPixels) {
  for (const int64_t channels : {1, 3, 5, 16}) {
    const Tensor images =
        at::arange(2 * 7 * 6 * channels, at::dtype(at::kFloat)).reshape({2, 7, 6, channels}) / 100;
    const Conv2D with_gaps(4, 1, {.strides = {3, 2}, .padding = "same"});
    const Conv2D without(4, 1);
    with_gaps(images);
    without(images);
    without.set_weights(with_gaps.get_weights());
    GradientTape tape({.persistent = true});
    tape.watch(images);
    const Tensor found = with_gaps(images);
    const Tensor expected = without(images.slice(1, 0, 7, 3).slice(2, 0, 6, 2));
    EXPECT_TRUE(found.allclose(expected));
    EXPECT_TRUE(tape.gradient(found.square().sum(), images)
                    .allclose(tape.gradient(expected.square().sum(), images), 1e-4, 1e-5));
  }
}

TEST(Conv2D, GradientOfTheKernelCountsThePixels) {
  const Conv2D conv = conv_of_ones(2, {});
  conv(counting_image(3));
  GradientTape tape;
  const auto gradients = tape.gradient(conv(counting_image(3)).sum(), conv.trainable_variables());
  EXPECT_THAT(elements(gradients[0]), ElementsAre(12, 16, 24, 28));
  EXPECT_THAT(elements(gradients[1]), ElementsAre(4));
}

// On one thread libtorch has a path of its own for single small images.
TEST(Conv2D, ASingleSmallImageHasTheGradientsOfTwo) {
  const internal::ScopedIntraOpThreads one(1);
  for (const int64_t filters : {1, 5}) {
    for (const Size2D size : {Size2D(2), Size2D(2, 1), Size2D(1, 2)}) {
      for (const int64_t channels : {1, 3}) {
        const Conv2D conv(filters, size);
        const Tensor image = random::normal({1, 5, 6, channels});
        const auto gradients_of = [&](const Tensor& images) {
          GradientTape tape;
          return tape.gradient(conv(images).sum(), conv.trainable_variables());
        };
        conv(image);
        const auto single = gradients_of(image);
        const auto twice = gradients_of(at::cat({image, image}));
        for (size_t i = 0; i < single.size(); ++i) {
          EXPECT_TRUE(at::allclose(2 * single[i], twice[i], 1e-5, 1e-5))
              << filters << " filters of " << size.height << " x " << size.width << ", " << channels
              << " channels, gradient " << i;
        }
      }
    }
  }
}

TEST(Conv2D, WeightsAreNamedAfterTheLayer) {
  const Conv2D conv(2, 3, {.name = "first"});
  conv(counting_image(5));
  EXPECT_EQ(conv.variables()[0].name(), "first/kernel");
  EXPECT_EQ(conv.variables()[1].name(), "first/bias");
}

TEST(Conv2D, ErrorsNameLayerAndShapes) {
  const Conv2D conv(2, 3, {.name = "edges"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                conv(at::ones({2, 28, 28}));
              }),
              AllOf(HasSubstr("'edges'"), HasSubstr("rank 4"), HasSubstr("[2,28,28]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                conv(at::ones({1, 5, 5, 1}, at::dtype(at::kByte)));
              }),
              AllOf(HasSubstr("'edges'"), HasSubstr("uint8")));
  EXPECT_FALSE(conv.built());
  conv(at::ones({1, 5, 5, 1}));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] {
        conv(at::ones({1, 5, 5, 3}));
      }),
      AllOf(HasSubstr("'edges'"), HasSubstr("last dimension is 1"), HasSubstr("[1,5,5,3]")));
  // A kernel larger than the image.
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                conv(at::ones({1, 2, 2, 1}));
              }),
              AllOf(HasSubstr("'edges'"), HasSubstr("at least [3,3]"), HasSubstr("[1,2,2,1]")));
}

TEST(Conv2D, OptionsAreChecked) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2D(0, 3); }), HasSubstr("filters is 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2D(1, 0); }), HasSubstr("kernel_size"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2D(1, 1, {.strides = 0}); }),
              HasSubstr("strides"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2D(1, 1, {.padding = "full"}); }),
              HasSubstr("'full'"));
}

}  // namespace
}  // namespace cohort::keras::layers
