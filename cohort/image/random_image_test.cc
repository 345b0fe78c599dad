#include "cohort/image/random_image.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>

#include "cohort/core/error.h"

namespace cohort::image {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(RandomImage, OfOneSeedIsTheSame) {
  const Tensor image = at::rand({6, 6, 3});
  const auto draw = [&](uint64_t seed) {
    const auto generator = random::RandomGenerator::from_seed(seed);
    const Tensor flipped = random_flip_left_right(image, generator);
    return random_brightness(random_crop(flipped, {4, 4, 3}, generator), 0.3, generator);
  };
  EXPECT_TRUE(draw(3).equal(draw(3)));
  EXPECT_FALSE(draw(3).equal(draw(4)));
}

TEST(RandomImage, EveryPlaceOfACropIsDrawn) {
  const Tensor line = at::arange(5);
  std::vector<int> drawn(5);
  for (int64_t seed = 0; seed < 200; ++seed) {
    ++drawn[stateless_random_crop(line, {1}, {seed, 0}).item<int64_t>()];
  }
  for (const int count : drawn) EXPECT_GT(count, 15);
}

TEST(RandomImage, ImagesOfABatchAreFlippedOneByOne) {
  const Tensor images = at::rand({64, 1, 2, 1});
  const Tensor result = stateless_random_flip_left_right(images, {1, 2});
  const auto flipped = result.ne(images).flatten(1).all(1).sum().item<int64_t>();
  EXPECT_GT(flipped, 16);
  EXPECT_LT(flipped, 48);
}

TEST(RandomImage, SaysWhatDoesNotFit) {
  const Tensor image = at::rand({4, 4, 3});
  EXPECT_THAT(
      [&] {
        random_crop(image, {5, 4, 3});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("[5,4,3] does not lie in")));
  EXPECT_THAT([&] { random_hue(image, 0.7); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("from 0 to 0.5")));
  EXPECT_THAT([&] { random_contrast(image, 0.5, 0.5); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("not be empty")));
}

}  // namespace
}  // namespace cohort::image
