#include "cohort/ops/kernels/single_channel_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cohort/ops/kernels/vectors.h"

namespace cohort::internal::plan {
namespace {

using ::testing::Each;

struct Numbers {
  explicit Numbers(unsigned seed) : random(seed) {}
  // Whole, so that sums are exact in any order.
  std::vector<float> draw(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
    return values;
  }
  std::mt19937 random;
};

constexpr SingleChannel kShapes[] = {
    {.width = 28, .size = 3, .filters = 32, .pooled_height = 13, .pooled_width = 13, .relu = true},
    {.width = 9, .size = 3, .filters = 16, .pooled_height = 1, .pooled_width = 3, .relu = false},
    {.width = 12, .size = 5, .filters = 48, .pooled_height = 4, .pooled_width = 2, .relu = true},
};

int64_t image_size(const SingleChannel& s) { return s.width * (2 * s.pooled_height + s.size - 1); }

TEST(SingleChannelKernels, EqualTheirReferences) {
  for (const SingleChannel& s : kShapes) {
    for (const bool has_bias : {true, false}) {
      Numbers numbers(1);
      const std::vector<float> image = numbers.draw(image_size(s));
      const std::vector<float> kernel = numbers.draw(s.size * s.size * s.filters);
      const std::vector<float> bias = numbers.draw(s.filters);
      const int64_t count = s.pooled_height * s.pooled_width * s.filters;
      std::vector<float> scratch(scratch_size(s)), out(count), expected(count);
      std::vector<uint8_t> places(count), expected_places(count);
      convolve_single_channel(s, image.data(), kernel.data(), has_bias ? bias.data() : nullptr,
                              scratch.data(), out.data(), places.data());
      convolve_single_channel_reference(s, image.data(), kernel.data(),
                                        has_bias ? bias.data() : nullptr, expected.data(),
                                        expected_places.data());
      EXPECT_EQ(out, expected);
      EXPECT_EQ(places, expected_places);

      const std::vector<float> gradient = numbers.draw(count);
      std::vector<float> ours(kernel.size(), 1.f), theirs(kernel.size(), 1.f);
      std::vector<double> our_bias(bias.size(), 2.), their_bias(bias.size(), 2.);
      add_single_channel_gradients(s, image.data(), gradient.data(), places.data(), ours.data(),
                                   has_bias ? our_bias.data() : nullptr);
      add_single_channel_gradients_reference(s, image.data(), gradient.data(), places.data(),
                                             theirs.data(), has_bias ? their_bias.data() : nullptr);
      EXPECT_EQ(ours, theirs);
      EXPECT_EQ(our_bias, their_bias);
    }
  }
}

TEST(SingleChannelKernels, NotANumberWins) {
  const SingleChannel& s = kShapes[0];
  std::vector<float> image(static_cast<size_t>(image_size(s)), 1.f);
  image[static_cast<size_t>(s.width + 1)] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> kernel(static_cast<size_t>(9 * s.filters), -1.f);
  std::vector<float> out(static_cast<size_t>(13 * 13 * s.filters));
  std::vector<float> scratch(static_cast<size_t>(scratch_size(s)));
  std::vector<uint8_t> places(out.size());
  convolve_single_channel(s, image.data(), kernel.data(), nullptr, scratch.data(), out.data(),
                          places.data());
  const std::vector<float> first(out.begin(), out.begin() + s.filters);
  for (const float value : first) EXPECT_TRUE(std::isnan(value));
  EXPECT_THAT(std::vector<float>(out.begin() + 2 * s.filters, out.end()), Each(0.f));
}

TEST(SingleChannelKernels, AreForFullVectorsOfFilters) {
  SingleChannel shape = kShapes[0];
  shape.filters = kVector * 5 / 4;
  EXPECT_FALSE(has_kernels(shape));
  shape.filters = 64;
  shape.size = 4;
  EXPECT_FALSE(has_kernels(shape));
}

}  // namespace
}  // namespace cohort::internal::plan
