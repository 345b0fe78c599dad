#include "cohort/keras/datasets/synthetic_images.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <limits>

#include "cohort/core/error.h"

namespace cohort::keras::datasets {
namespace {

constexpr int64_t kPixels = 28 * 28;

TEST(SyntheticImagesTest, HasTheFormOfMnist) {
  auto [train, test] = synthetic_images({.num_train = 25, .num_test = 7});
  EXPECT_EQ(train.images.sizes(), (std::vector<int64_t>{25, 28, 28}));
  EXPECT_EQ(train.images.scalar_type(), uint8);
  EXPECT_EQ(train.labels.sizes(), (std::vector<int64_t>{25}));
  EXPECT_EQ(test.images.size(0), 7);
  for (int64_t i = 0; i < 25; ++i) EXPECT_EQ(train.labels.data_ptr<uint8_t>()[i], i % 10);
}

TEST(SyntheticImagesTest, TheSeedDecides) {
  const auto bytes = [](const Split& split) {
    return std::string(reinterpret_cast<const char*>(split.images.data_ptr<uint8_t>()),
                       static_cast<size_t>(split.images.numel()));
  };
  const auto first = synthetic_images({.num_train = 20, .num_test = 20, .seed = 1});
  const auto again = synthetic_images({.num_train = 20, .num_test = 20, .seed = 1});
  const auto other = synthetic_images({.num_train = 20, .num_test = 20, .seed = 2});
  EXPECT_EQ(bytes(first.train), bytes(again.train));
  EXPECT_NE(bytes(first.train), bytes(other.train));
  EXPECT_NE(bytes(first.train), bytes(first.test));
}

// The nearest of ten mean images finds most classes, though place and size vary: a model has
// something to learn, and can.
TEST(SyntheticImagesTest, ClassesCanBeToldApart) {
  const auto [train, test] = synthetic_images({.num_train = 1000, .num_test = 200});
  std::array<std::array<double, kPixels>, 10> means{};
  for (int64_t i = 0; i < 1000; ++i) {
    for (int64_t p = 0; p < kPixels; ++p) {
      means[i % 10][p] += train.images.data_ptr<uint8_t>()[i * kPixels + p] / 100.0;
    }
  }
  int num_right = 0;
  for (int64_t i = 0; i < 200; ++i) {
    int best = 0;
    double least = std::numeric_limits<double>::max();
    for (int label = 0; label < 10; ++label) {
      double distance = 0;
      for (int64_t p = 0; p < kPixels; ++p) {
        const double d = test.images.data_ptr<uint8_t>()[i * kPixels + p] - means[label][p];
        distance += d * d;
      }
      if (distance < least) {
        least = distance;
        best = label;
      }
    }
    num_right += best == i % 10;
  }
  EXPECT_GT(num_right, 100);
}

TEST(SyntheticImagesTest, RefusesNegativeNumbers) {
  EXPECT_THROW(synthetic_images({.num_train = -1}), InvalidArgumentError);
  EXPECT_EQ(synthetic_images({.num_train = 0, .num_test = 0}).train.images.size(0), 0);
}

}  // namespace
}  // namespace cohort::keras::datasets
