#include "cohort/image/color.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include "cohort/core/error.h"

namespace cohort::image {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The way by libtorch's operations, which gradients take.
template <class Operation>
Tensor by_operations(const Operation& operation, const Tensor& images) {
  return operation(images.clone().set_requires_grad(true)).detach();
}

TEST(Colors, LoopsAndOperationsAgree) {
  const Tensor images = at::rand({2, 5, 7, 3});
  const auto agree = [&](const auto& operation) {
    EXPECT_TRUE(operation(images).allclose(by_operations(operation, images), 1e-4, 1e-5));
  };
  agree([](const Tensor& x) { return rgb_to_hsv(x); });
  agree([](const Tensor& x) { return hsv_to_rgb(x); });
  agree([](const Tensor& x) { return adjust_hue(x, 0.3); });
  agree([](const Tensor& x) { return adjust_hue(x, -0.8); });
  agree([](const Tensor& x) { return adjust_saturation(x, 1.7); });
}

TEST(Colors, GrayHasNoHue) {
  const Tensor gray = at::tensor({0.0f, 0.0f, 0.0f, 0.5f, 0.5f, 0.5f}).reshape({2, 3});
  EXPECT_TRUE(
      rgb_to_hsv(gray).equal(at::tensor({0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.5f}).reshape({2, 3})));
  EXPECT_TRUE(adjust_hue(gray, 0.5).equal(gray));
}

TEST(Colors, DtypesKeepTheirRanges) {
  const Tensor bytes = at::tensor({0, 128, 255}).to(uint8);
  const Tensor numbers = convert_image_dtype(bytes, float32);
  EXPECT_FLOAT_EQ(numbers[2].item<float>(), 1);
  EXPECT_TRUE(convert_image_dtype(numbers, uint8).equal(bytes));
  const Tensor outside = at::tensor({-1.0f, 2.0f});
  EXPECT_TRUE(convert_image_dtype(outside, uint8, true).equal(at::tensor({0, 255}).to(uint8)));
  EXPECT_THAT([&] { convert_image_dtype(bytes, boolean); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("dtype is bool")));
}

TEST(Colors, SayWhatDoesNotFit) {
  const Tensor image = at::rand({4, 4, 3});
  EXPECT_THAT([&] { adjust_hue(image, 1.5); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("delta is 1.5")));
  EXPECT_THAT([&] { grayscale_to_rgb(image); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("[.., 1]")));
  EXPECT_THAT([&] { adjust_gamma(image, -1); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("gamma is -1")));
}

}  // namespace
}  // namespace cohort::image
