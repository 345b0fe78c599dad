#include "cohort/image/transform.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <limits>

#include "cohort/core/error.h"

namespace cohort::image {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ProjectiveTransform, LoopsAndOperationsAgree) {
  const Tensor images = at::rand({3, 9, 11, 2});
  Tensor transforms = at::randn({3, 8}) * 0.3;
  transforms.select(1, 6).mul_(0.02);
  transforms.select(1, 7).mul_(0.02);
  transforms.select(1, 2).mul_(30);
  for (const char* mode : {"reflect", "wrap", "constant", "nearest"}) {
    for (const char* interpolation : {"bilinear", "nearest"}) {
      const ProjectiveTransformOptions options = {.fill_mode = mode,
                                                  .fill_value = 0.5,
                                                  .interpolation = interpolation,
                                                  .output_shape = {7, 13}};
      const Tensor loops = projective_transform(images, transforms, options);
      const Tensor operations =
          projective_transform(images.clone().set_requires_grad(true), transforms, options);
      // At the border of two pixels the last digit may decide.
      const double differing =
          (loops - operations).abs().gt(1e-3).to(float32).mean().item<double>();
      EXPECT_LT(differing, 0.02) << mode << interpolation;
    }
  }
}

TEST(ProjectiveTransform, PlacesThatAreNoNumbersAreFilled) {
  const Tensor image = at::rand({4, 4, 1});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float number : {nan, std::numeric_limits<float>::infinity(), 1e30f}) {
    for (const char* mode : {"reflect", "wrap", "nearest"}) {
      const Tensor result = projective_transform(
          image, at::tensor({1.0f, 0.0f, number, 0.0f, 1.0f, 0.0f, 0.0f, 0.0f}),
          {.fill_mode = mode, .fill_value = 7});
      EXPECT_TRUE(result.eq(7).all().item<bool>()) << mode << number;
    }
  }
}

TEST(ProjectiveTransform, SaysWhatDoesNotFit) {
  const Tensor images = at::rand({2, 4, 4, 1});
  EXPECT_THAT(
      [&] {
        projective_transform(images, at::rand({3, 8}));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[batch, 8]")));
  EXPECT_THAT([&] { projective_transform(images, at::rand({8}), {.fill_mode = "mirror"}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("no fill_mode 'mirror'")));
}

}  // namespace
}  // namespace cohort::image
