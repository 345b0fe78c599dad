#include "cohort/keras/layers/images/random_colors.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/keras/layers/images/image_layer.h"

namespace cohort::keras::layers {
namespace {

using internal::FactorRange;
using internal::str;

// Numbers of images for all their pixels: [batch, 1, 1, 1] or [1, 1, 1].
Tensor for_pixels(const Tensor& numbers, const Tensor& images) {
  return images.dim() == 4 ? numbers.view({-1, 1, 1, 1}) : numbers.view({1, 1, 1});
}

class RandomContrastImpl final : public internal::RandomImageLayer {
 public:
  RandomContrastImpl(Factor factor, const RandomImageOptions& options)
      : RandomImageLayer("RandomContrast", {.name = options.name, .dtype = options.dtype},
                         options.seed),
        factor_(factor) {
    if (factor.lower() >= 0 && factor.lower() <= 1 && factor.upper() >= 0) return;
    throw InvalidArgumentError(str("RandomContrast: factor is ", factor.lower(), " and ",
                                   factor.upper(),
                                   "; the first must lie in [0, 1], the second not below 0"));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("factor", factor_);
      field("seed", seed());
    });
  }

 protected:
  Tensor changed(const Tensor& images) override {
    const Tensor factor = draw_one(images, {1 - factor_.lower(), 1 + factor_.upper()});
    const Tensor wide = images.to(float32);
    const Tensor means = wide.mean({-3, -2}, /*keepdim=*/true);
    return in_compute_dtype(((wide - means) * factor + means).clamp(0, 255));
  }

 private:
  Factor factor_;
};

class RandomBrightnessImpl final : public internal::RandomImageLayer {
 public:
  RandomBrightnessImpl(Factor factor, const RandomBrightnessOptions& options)
      : RandomImageLayer("RandomBrightness", {.name = options.name, .dtype = options.dtype},
                         options.seed) {
    const auto fits = [](double x) { return x >= -1 && x <= 1; };
    if (!fits(factor.lower()) || !fits(factor.upper())) {
      throw InvalidArgumentError(str("RandomBrightness: factor is ", factor.lower(), " and ",
                                     factor.upper(), "; both must lie in [-1, 1]"));
    }
    const FactorRange range = internal::symmetric_range(factor);
    factor_ = {std::min(range.lower, range.upper), std::max(range.lower, range.upper)};
    values_.assign(options.value_range.begin(), options.value_range.end());
    std::sort(values_.begin(), values_.end());
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("factor", std::vector<double>{factor_.lower, factor_.upper});
      field("value_range", values_);
      field("seed", seed());
    });
  }

 protected:
  Tensor changed(const Tensor& images) override {
    const Tensor added = draw_each(images, factor_) * (values_[1] - values_[0]);
    const Tensor moved = images + for_pixels(added.to(images.scalar_type()), images);
    return moved.clamp(values_[0], values_[1]);
  }

 private:
  FactorRange factor_;
  std::vector<double> values_;  // two, the lower first
};

}  // namespace

RandomContrast::RandomContrast(Factor factor, RandomImageOptions options)
    : LayerHandle(std::make_shared<RandomContrastImpl>(factor, options)) {}

RandomBrightness::RandomBrightness(Factor factor, RandomBrightnessOptions options)
    : LayerHandle(std::make_shared<RandomBrightnessImpl>(factor, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_random_contrast(FieldReader& field) {
  layers::Factor factor;
  layers::RandomImageOptions options;
  field.common(options);
  field("factor", factor);
  field("seed", options.seed);
  return layers::RandomContrast(factor, std::move(options));
}

layers::LayerHandle read_random_brightness(FieldReader& field) {
  layers::Factor factor;
  std::vector<double> values = {0, 255};
  layers::RandomBrightnessOptions options;
  field.common(options);
  field("factor", factor);
  field("value_range", values);
  field("seed", options.seed);
  if (values.size() != 2) {
    throw InvalidArgumentError(str("'value_range': needs two numbers, but has ", values.size()));
  }
  options.value_range = {values[0], values[1]};
  return layers::RandomBrightness(factor, std::move(options));
}

}  // namespace cohort::internal
