#include "models/gratings.h"

#include <cmath>
#include <numbers>

#include "models/draws.h"

namespace models {

namespace tf = cohort;

Rows make_gratings(int64_t rows, const GratingOptions& options) {
  Draws draws(options.seed);
  const int64_t size = options.size;
  const tf::Tensor images = tf::zeros({rows, size, size, 3});
  const tf::Tensor labels = tf::zeros({rows}, tf::int64);
  float* pixel = images.data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t direction = draws.below(options.directions);
    labels.data_ptr<int64_t>()[row] = direction;
    const float angle = std::numbers::pi_v<float> * static_cast<float>(direction) /
                        static_cast<float>(options.directions);
    const float frequency = draws.uniform(1.0F, 2.0F);
    const float phase = draws.uniform(0, 2 * std::numbers::pi_v<float>);
    const float colour[] = {draws.uniform(0.3F, 1), draws.uniform(0.3F, 1), draws.uniform(0.3F, 1)};
    for (int64_t y = 0; y < size; ++y) {
      for (int64_t x = 0; x < size; ++x) {
        const float along =
            std::cos(angle) * static_cast<float>(x) + std::sin(angle) * static_cast<float>(y);
        const float stripe = std::sin(frequency * along + phase);
        for (const float channel : colour) {
          *pixel++ = channel * stripe + draws.uniform(-options.noise, options.noise);
        }
      }
    }
  }
  return {images, labels};
}

}  // namespace models
