#include "cohort/keras/datasets/synthetic_images.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "cohort/core/error.h"
#include "cohort/ops/philox.h"

namespace cohort::keras::datasets {
namespace {

constexpr int kSide = 28;
constexpr int kNumClasses = 10;

// Whether the shape of a class covers the point (x, y), where the shape's box is [-1, 1] x [-1, 1].
bool covers(int label, double x, double y) {
  const double furthest = std::max(std::abs(x), std::abs(y));
  const double radius = std::hypot(x, y);
  if (furthest > 1) return false;
  const auto stripe = [](double position) { return static_cast<int>((position + 1) * 2.5) % 2; };
  switch (label) {
    case 0:
      return true;
    case 1:
      return furthest > 0.65;
    case 2:
      return radius < 1;
    case 3:
      return radius < 1 && radius > 0.6;
    case 4:
      return std::abs(x) < (y + 1) / 2;
    case 5:
      return std::min(std::abs(x), std::abs(y)) < 0.25;
    case 6:
      return std::abs(std::abs(x) - std::abs(y)) < 0.3;
    case 7:
      return stripe(y) == 0;
    case 8:
      return stripe(x) == 0;
    default:
      return stripe(x) == stripe(y);
  }
}

void draw(int label, internal::Philox& random, uint8_t* pixels) {
  const auto between = [&](double low, double high) {
    return low + (high - low) * random.next_double();
  };
  const double size = between(7, 11);
  const double center_x = between(size + 1, kSide - 1 - size);
  const double center_y = between(size + 1, kSide - 1 - size);
  const double brightness = between(120, 255);
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const bool inside = covers(label, (column - center_x) / size, (row - center_y) / size);
      const double noise = between(-30, 30);
      *pixels++ = static_cast<uint8_t>(std::clamp((inside ? brightness : 0) + noise, 0.0, 255.0));
    }
  }
}

Split draw_split(int64_t count, internal::Philox random) {
  const auto options = at::TensorOptions().dtype(uint8);
  Split split{.images = at::empty({count, kSide, kSide}, options),
              .labels = at::empty({count}, options)};
  auto* pixels = split.images.data_ptr<uint8_t>();
  auto* labels = split.labels.data_ptr<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int label = static_cast<int>(i % kNumClasses);
    labels[i] = static_cast<uint8_t>(label);
    draw(label, random, pixels + i * kSide * kSide);
  }
  return split;
}

}  // namespace

TrainTest synthetic_images(const SyntheticImagesOptions& options) {
  if (options.num_train < 0 || options.num_test < 0) {
    throw InvalidArgumentError(
        internal::str("cannot draw ", options.num_train, " and ", options.num_test, " images"));
  }
  return {.train = draw_split(options.num_train, internal::Philox(options.seed, /*stream=*/0)),
          .test = draw_split(options.num_test, internal::Philox(options.seed, /*stream=*/1))};
}

}  // namespace cohort::keras::datasets
