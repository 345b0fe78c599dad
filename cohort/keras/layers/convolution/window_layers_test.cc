// What layers over windows do beside what their elders' tests hold: groups, channels first,
// depthwise and separable kernels, volumes, margins.
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor noise(const std::vector<int64_t>& shape) {
  return random::RandomGenerator::from_seed(3).normal(shape);
}
bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-5, 1e-5); }

TEST(Conv2D, GroupsSeeTheirChannelsAlone) {
  const Tensor images = noise({2, 5, 5, 4});
  const Conv2D grouped(6, 3, {.groups = 2});
  const Tensor found = grouped(images);
  EXPECT_THAT(grouped.variables()[0].shape(), ElementsAre(3, 3, 2, 6));
  const std::vector<Tensor> weights = grouped.get_weights();
  std::vector<Tensor> parts;
  for (int64_t group = 0; group < 2; ++group) {
    const Conv2D alone(3, 3);
    const Tensor channels = images.narrow(3, 2 * group, 2);
    alone(channels);
    alone.set_weights({weights[0].narrow(3, 3 * group, 3), weights[1].narrow(0, 3 * group, 3)});
    parts.push_back(alone(channels));
  }
  EXPECT_TRUE(close(found, at::cat(parts, 3)));
}

TEST(Conv2D, GroupsMustDivideFiltersAndChannels) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2D(4, 3, {.groups = 3}); }),
              HasSubstr("Conv2D: groups is 3; it must be 1 or more, and divide the filters, 4"));
  const Conv2D conv(4, 3, {.groups = 4, .name = "cut"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                conv(at::ones({1, 5, 5, 6}));
              }),
              AllOf(HasSubstr("'cut'"), HasSubstr("4 groups"), HasSubstr("6 channels")));
  EXPECT_FALSE(conv.built());
}

TEST(Conv2D, ChannelsFirstChecksItsChannels) {
  const Conv2D conv(4, 3, {.data_format = "channels_first", .name = "first"});
  EXPECT_THAT(conv(at::ones({2, 3, 7, 6})).sizes(), ElementsAre(2, 4, 5, 4));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                conv(at::ones({2, 7, 6, 3}));
              }),
              AllOf(HasSubstr("'first'"), HasSubstr("dimension 1 (counted from 0) is 3")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                conv(at::ones({2, 3, 2, 6}));
              }),
              HasSubstr("at least"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Conv2D(4, 3, {.data_format = "NCHW"}); }),
              HasSubstr("'NCHW'"));
}

TEST(ChannelsFirst, IsChannelsLastTurned) {
  const Tensor images = noise({2, 6, 7, 4});
  const Tensor turned = images.permute({0, 3, 1, 2}).contiguous();
  const auto same = [&](const LayerHandle& last, const LayerHandle& first) {
    const Tensor expected = last(images);
    first(turned);
    first.set_weights(last.get_weights());
    return close(first(turned).movedim(1, 3), expected);
  };
  const std::string kFirst = "channels_first";
  EXPECT_TRUE(same(Conv2D(3, 3, {.padding = "same"}),
                   Conv2D(3, 3, {.padding = "same", .data_format = kFirst})));
  EXPECT_TRUE(same(Conv2DTranspose(3, 3, {.strides = 2}),
                   Conv2DTranspose(3, 3, {.strides = 2, .data_format = kFirst})));
  EXPECT_TRUE(same(DepthwiseConv2D(2), DepthwiseConv2D(2, {.data_format = kFirst})));
  EXPECT_TRUE(same(SeparableConv2D(5, 2), SeparableConv2D(5, 2, {.data_format = kFirst})));
  EXPECT_TRUE(same(MaxPooling2D(), MaxPooling2D(2, {.data_format = kFirst})));
  EXPECT_TRUE(same(AveragePooling2D(3, {.padding = "same"}),
                   AveragePooling2D(3, {.padding = "same", .data_format = kFirst})));
  EXPECT_TRUE(same(ZeroPadding2D({{1, 0}, {0, 2}}),
                   ZeroPadding2D({{1, 0}, {0, 2}}, {.data_format = kFirst})));
  EXPECT_TRUE(same(Cropping2D({1, 2}), Cropping2D({1, 2}, {.data_format = kFirst})));
  EXPECT_TRUE(same(UpSampling2D({2, 3}), UpSampling2D({2, 3}, {.data_format = kFirst})));
}

TEST(DepthwiseConv2D, OutputsOfAChannelLieTogether) {
  const DepthwiseConv2D conv(1, {.depth_multiplier = 2, .use_bias = false});
  const Tensor pixel = numbers({10, 1}, {1, 1, 1, 2});
  conv(pixel);
  conv.set_weights({numbers({1, 2, 3, 4}, {1, 1, 2, 2})});
  EXPECT_THAT(elements(conv(pixel)), ElementsAre(10, 20, 3, 4));
}

TEST(SeparableConv2D, MixesWhatDepthwiseKernelsGive) {
  const SeparableConv2D conv(1, 1, {.depth_multiplier = 2, .use_bias = false});
  const Tensor pixel = numbers({10, 1}, {1, 1, 1, 2});
  conv(pixel);
  EXPECT_EQ(conv.variables()[0].name().substr(conv.name().size()), "/depthwise_kernel");
  EXPECT_THAT(conv.variables()[1].shape(), ElementsAre(1, 1, 4, 1));
  conv.set_weights({numbers({1, 2, 3, 4}, {1, 1, 2, 2}), numbers({1, 1, 1, 10}, {1, 1, 4, 1})});
  EXPECT_THAT(elements(conv(pixel)), ElementsAre(10 + 20 + 3 + 40));
}

TEST(WindowLayers, TakeEmptyBatches) {
  const auto empty_like = [](const LayerHandle& layer, const std::vector<int64_t>& example) {
    std::vector<int64_t> one{1}, none{0};
    one.insert(one.end(), example.begin(), example.end());
    none.insert(none.end(), example.begin(), example.end());
    layer(at::ones(one));
    GradientTape tape;
    const Tensor y = layer(at::zeros(none));
    if (layer.trainable_variables().empty()) return y.size(0) == 0;
    for (const Tensor& gradient : tape.gradient(y.sum(), layer.trainable_variables())) {
      if (!gradient.defined() || gradient.count_nonzero().item<int64_t>() != 0) return false;
    }
    return y.size(0) == 0;
  };
  EXPECT_TRUE(empty_like(Conv3D(2, 2), {4, 4, 4, 3}));
  EXPECT_TRUE(empty_like(Conv2D(4, 2, {.groups = 2}), {4, 4, 2}));
  EXPECT_TRUE(empty_like(DepthwiseConv2D(2), {4, 4, 3}));
  EXPECT_TRUE(empty_like(SeparableConv1D(4, 2), {5, 3}));
  EXPECT_TRUE(empty_like(Conv1DTranspose(2, 3, {.strides = 2}), {5, 3}));
  EXPECT_TRUE(empty_like(MaxPooling3D(), {4, 4, 4, 3}));
  EXPECT_TRUE(empty_like(AveragePooling3D(2, {.padding = "same"}), {3, 4, 4, 3}));
  EXPECT_TRUE(empty_like(UpSampling3D(), {2, 2, 2, 3}));
  EXPECT_TRUE(empty_like(GroupNormalization({.groups = 2}), {3, 3, 4}));
  EXPECT_TRUE(empty_like(PReLU(), {3, 4}));
}

TEST(WindowLayers, ComputeInFloat64AndBfloat16) {
  for (const DType dtype : {DType::Double, DType::BFloat16}) {
    const Tensor volume = noise({2, 4, 4, 4, 2}).to(dtype);
    EXPECT_EQ(Conv3D(2, 2, {.dtype = dtype})(volume).scalar_type(), dtype);
    EXPECT_EQ(AveragePooling3D(2, {.dtype = dtype})(volume).scalar_type(), dtype);
    const Tensor image = volume.select(1, 0);
    EXPECT_EQ(DepthwiseConv2D(2, {.dtype = dtype})(image).scalar_type(), dtype);
    EXPECT_EQ(UpSampling2D(2, {.interpolation = "bilinear", .dtype = dtype})(image).scalar_type(),
              dtype);
    EXPECT_EQ(GroupNormalization({.groups = 2, .dtype = dtype})(image).scalar_type(), dtype);
  }
}

TEST(Cropping2D, LeavesSomething) {
  EXPECT_THAT(elements(Cropping1D({1, 0})(numbers({1, 2, 3}, {1, 3, 1}))), ElementsAre(2, 3));
  const Cropping2D layer(2, {.name = "cut"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({1, 4, 6, 1}));
              }),
              AllOf(HasSubstr("'cut'"), HasSubstr("axis 1"), HasSubstr("[1,4,6,1]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                ZeroPadding2D({0, -1});
              }),
              HasSubstr("padding is (-1, -1)"));
}

TEST(UpSampling2D, SaysWhichInterpolationsThereAre) {
  EXPECT_THAT(elements(UpSampling1D(2)(numbers({1, 2}, {1, 2, 1}))), ElementsAre(1, 1, 2, 2));
  EXPECT_THROW(UpSampling2D(2, {.interpolation = "bicubic"}), UnimplementedError);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { UpSampling2D(2, {.interpolation = "cubist"}); }),
              HasSubstr("'cubist'"));
}

TEST(SpatialDropout, DropsWholeChannels) {
  const auto dropped = [](const LayerHandle& layer, const std::vector<int64_t>& shape,
                          std::vector<int64_t> spatial) {
    const Tensor y = layer(at::ones(shape), {.training = true});
    return at::allclose(y.amax(spatial), y.amin(spatial)) && y.eq(0).any().item<bool>() &&
           y.eq(2).any().item<bool>();
  };
  EXPECT_TRUE(dropped(SpatialDropout1D(0.5, {.seed = 1}), {4, 6, 16}, {1}));
  EXPECT_TRUE(dropped(SpatialDropout2D(0.5, {.seed = 1}), {4, 3, 3, 16}, {1, 2}));
  EXPECT_TRUE(dropped(SpatialDropout2D(0.5, {.data_format = "channels_first", .seed = 1}),
                      {4, 16, 3, 3}, {2, 3}));
  EXPECT_TRUE(dropped(SpatialDropout3D(0.5, {.seed = 1}), {4, 2, 3, 3, 16}, {1, 2, 3}));
  EXPECT_TRUE(
      dropped(Dropout(0.5, {.noise_shape = {kUnknownDim, 1, 16}, .seed = 1}), {4, 6, 16}, {1}));
  const Dropout wrong(0.5, {.noise_shape = {4, 2, 16}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                wrong(at::ones({4, 6, 16}), {.training = true});
              }),
              HasSubstr("noise_shape is [4,2,16]"));
}

TEST(Noise, KeepsMeansAndIsThatOfTraining) {
  const Tensor x = at::full({200, 100}, 3.f);
  EXPECT_TRUE(GaussianNoise(2)(x).equal(x));
  const Tensor noisy = GaussianNoise(2, {.seed = 1})(x, {.training = true});
  EXPECT_NEAR(noisy.mean().item<double>(), 3, 0.1);
  EXPECT_NEAR(noisy.std().item<double>(), 2, 0.1);
  const Tensor scaled = GaussianDropout(0.2, {.seed = 1})(x, {.training = true});
  EXPECT_NEAR(scaled.mean().item<double>(), 3, 0.1);
  EXPECT_NEAR(scaled.std().item<double>(), 1.5, 0.1);
  const Tensor normal = noise({200, 100});
  const Tensor alpha = AlphaDropout(0.3, {.seed = 1})(normal, {.training = true});
  EXPECT_NEAR(alpha.mean().item<double>(), 0, 0.1);
  EXPECT_NEAR(alpha.std().item<double>(), 1, 0.1);
}

TEST(GroupNormalization, NormalizesEachGroupOfAnExample) {
  const Tensor y = GroupNormalization({.groups = 2})(noise({3, 5, 5, 4}) * 7 + 2);
  const Tensor groups = y.reshape({3, 25, 2, 2});
  EXPECT_TRUE(at::allclose(groups.mean({1, 3}), at::zeros({3, 2}), 0, 1e-5));
  EXPECT_TRUE(at::allclose(groups.square().mean({1, 3}), at::ones({3, 2}), 1e-3));
  const GroupNormalization layer({.groups = 3, .name = "thirds"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({2, 4}));
              }),
              AllOf(HasSubstr("'thirds'"), HasSubstr("3 groups"), HasSubstr("4 channels")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { GroupNormalization({.groups = 0}); }),
              HasSubstr("groups is 0"));
}

TEST(PReLU, LearnsASlopeForEachElementOrChannel) {
  const Tensor x = numbers({-1, 2, -3, -4}, {1, 2, 2});
  const PReLU each({.alpha_initializer = initializers::Constant(0.5)});
  EXPECT_THAT(elements(each(x)), ElementsAre(-0.5, 2, -1.5, -2));
  EXPECT_THAT(each.variables()[0].shape(), ElementsAre(2, 2));
  const PReLU shared({.shared_axes = {1}});
  EXPECT_THAT(elements(shared(x)), Each(::testing::AnyOf(0, 2)));
  EXPECT_THAT(shared.variables()[0].shape(), ElementsAre(1, 2));
  const PReLU wrong({.shared_axes = {3}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { wrong(x); }), HasSubstr("shared axis 3"));
}

TEST(Reshaping, PermutesRepeatsAndLeavesAlone) {
  const Tensor x = at::arange(6, at::kFloat).reshape({1, 2, 3});
  EXPECT_THAT(elements(Permute({2, 1})(x)), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Permute({1, 3}); }), HasSubstr("[1,3]"));
  EXPECT_THAT(RepeatVector(3)(at::ones({2, 4})).sizes(), ElementsAre(2, 3, 4));
  EXPECT_TRUE(Identity()(x).equal(x));
}

}  // namespace
}  // namespace cohort::keras::layers
