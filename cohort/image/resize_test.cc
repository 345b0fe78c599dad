#include "cohort/image/resize.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include "cohort/core/error.h"

namespace cohort::image {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The way by products of matrices, which gradients take.
Tensor by_products(const Tensor& images, at::IntArrayRef size, const ResizeOptions& options) {
  return resize(images.to(float32).set_requires_grad(true), size, options).detach();
}

TEST(Resize, LoopsAndProductsOfMatricesAgree) {
  for (const char* method : {"bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5",
                             "gaussian", "mitchellcubic"}) {
    for (const bool antialias : {false, true}) {
      for (const int64_t channels : {1, 3, 4}) {
        const Tensor images = (at::rand({2, 13, 17, channels}) * 255).floor();
        for (const DType dtype : {float32, uint8, int32}) {
          const ResizeOptions options = {.method = method, .antialias = antialias};
          const Tensor resized = resize(images.to(dtype), {9, 21}, options);
          EXPECT_TRUE(
              resized.to(float32).allclose(by_products(images, {9, 21}, options), 1e-4, 1e-3))
              << method << antialias << channels << resized.dtype();
        }
      }
    }
  }
}

TEST(Resize, RowsDoNotDependOnHowWorkIsDivided) {
  const Tensor images = at::rand({3, 200, 310, 3});
  const Tensor together = resize(images, {180, 170});
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(resize(images[i], {180, 170}).equal(together[i]));
}

TEST(Resize, OfGapsReadsWhatIsThere) {
  const Tensor images = at::rand({9, 12, 6}).slice(2, 0, 6, 2).transpose(0, 1);
  EXPECT_TRUE(resize(images, {5, 5}).equal(resize(images.contiguous(), {5, 5})));
  EXPECT_TRUE(resize(images, {5, 5}, {.method = "nearest"})
                  .equal(resize(images.contiguous(), {5, 5}, {.method = "nearest"})));
}

TEST(Resize, SaysWhatCannotBeResized) {
  const Tensor image = at::rand({4, 4, 3});
  EXPECT_THAT(
      [&] {
        resize(image, {0, 4});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("two positive numbers")));
  EXPECT_THAT(
      [&] {
        resize(image, {int64_t{1} << 40, 4});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("up to 16777216")));
  EXPECT_THAT(
      [&] {
        resize(image, {4, 4}, {.method = "cubic"});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("no method 'cubic'")));
  EXPECT_THAT(
      [&] {
        resize(at::rand({4, 4}), {4, 4});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("float32 [4,4]")));
  EXPECT_THAT(
      [&] {
        resize(at::rand({0, 4, 3}), {4, 4});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("no pixels")));
  EXPECT_THAT(
      [&] {
        resize(at::rand({4, 400, 3}), {4, 4}, {.preserve_aspect_ratio = true});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("nothing is left")));
}

TEST(CropAndResize, OfTheWholeImageIsTheImage) {
  const Tensor images = at::rand({2, 5, 7, 3});
  const Tensor boxes = at::tensor({0.0f, 0.0f, 1.0f, 1.0f}).reshape({1, 4});
  const Tensor second = at::ones({1}, int64);
  EXPECT_TRUE(crop_and_resize(images, boxes, second, {5, 7})[0].allclose(images[1], 1e-5, 1e-6));
  EXPECT_THAT(
      [&] {
        crop_and_resize(images, boxes, second * 2, {5, 7});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("from 2 to 2 in a batch of 2")));
}

}  // namespace
}  // namespace cohort::image
