#include "cohort/keras/layers/images/random_transforms.h"

#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <initializer_list>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/image/transform.h"
#include "cohort/keras/layers/images/image_layer.h"

namespace cohort::keras::layers {
namespace {

using internal::FactorRange;
using internal::str;

template <class Fields, class Options>
void transform_fields(Fields& field, Options& options) {
  field("fill_mode", options.fill_mode);
  field("fill_value", options.fill_value);
  field("interpolation", options.interpolation);
  field("seed", options.seed);
}

template <class Fields, class Range, class Options>
void rotation_fields(Fields& field, Range& factor, Options& options) {
  field("factor", factor);
  transform_fields(field, options);
}

template <class Fields, class Range, class Options>
void translation_fields(Fields& field, Range& height_factor, Range& width_factor,
                        Options& options) {
  field("height_factor", height_factor);
  field("width_factor", width_factor);
  transform_fields(field, options);
}

template <class Fields, class Range, class Options>
void zoom_fields(Fields& field, Range& height_factor, Options& options) {
  field("height_factor", height_factor);
  field("width_factor", options.width_factor);
  transform_fields(field, options);
}

void check_order(const char* layer, const char* option, const Factor& factor) {
  const FactorRange range = internal::symmetric_range(factor);
  if (range.lower <= range.upper) return;
  throw InvalidArgumentError(str(layer, ": ", option, " is the range from ", range.lower, " to ",
                                 range.upper, "; its upper end must not be below its lower"));
}

void check_within(const char* layer, const char* option, const Factor& factor, double most) {
  const FactorRange range = internal::symmetric_range(factor);
  const auto fits = [most](double x) { return x >= -1 && x <= most; };
  if (fits(range.lower) && fits(range.upper)) return;
  throw InvalidArgumentError(str(layer, ": ", option, " is the range from ", range.lower, " to ",
                                 range.upper, "; its ends must be from -1",
                                 std::isfinite(most) ? str(" to ", most) : " on"));
}

void check_modes(const char* layer, const std::string& fill_mode,
                 const std::string& interpolation) {
  const auto is_one_of = [](const std::string& value, std::initializer_list<const char*> all) {
    for (const char* one : all) {
      if (value == one) return true;
    }
    return false;
  };
  if (!is_one_of(fill_mode, {"reflect", "wrap", "constant", "nearest"})) {
    throw InvalidArgumentError(str(layer, ": no fill_mode is called ", internal::quoted(fill_mode),
                                   "; there are: reflect, wrap, constant, nearest"));
  }
  if (!is_one_of(interpolation, {"nearest", "bilinear"})) {
    throw InvalidArgumentError(str(layer, ": no interpolation is called ",
                                   internal::quoted(interpolation),
                                   "; there are: nearest, bilinear"));
  }
}

// One of the three, which says how each pixel of the result is found in the image.
template <class Options>
class TransformLayer : public internal::RandomImageLayer {
 public:
  TransformLayer(const char* class_name, const Options& options)
      : RandomImageLayer(class_name, {.name = options.name, .dtype = options.dtype}, options.seed),
        options_(options) {
    check_modes(class_name, options.fill_mode, options.interpolation);
  }

 protected:
  // [8] numbers for each image, as columns (cohort::image::projective_transform).
  virtual std::vector<Tensor> columns(const Tensor& images) = 0;

  Tensor changed(const Tensor& images) final {
    std::vector<Tensor> all = columns(images);
    all.resize(8, at::zeros_like(all[0]));
    return cohort::image::projective_transform(images, at::stack(all, 1),
                                               {.fill_mode = options_.fill_mode,
                                                .fill_value = options_.fill_value,
                                                .interpolation = options_.interpolation});
  }

  static double last_row(const Tensor& images) { return static_cast<double>(images.size(-3) - 1); }
  static double last_column(const Tensor& images) {
    return static_cast<double>(images.size(-2) - 1);
  }

  Options options_;
};

class RandomRotationImpl final : public TransformLayer<RandomTransformOptions> {
 public:
  RandomRotationImpl(Factor factor, const RandomTransformOptions& options)
      : TransformLayer("RandomRotation", options), factor_(factor) {
    check_order("RandomRotation", "factor", factor);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { rotation_fields(field, factor_, options_); });
  }

 protected:
  std::vector<Tensor> columns(const Tensor& images) override {
    constexpr double kTurn = 2 * std::numbers::pi;
    const FactorRange range = internal::symmetric_range(factor_);
    const Tensor angles = draw_each(images, {range.lower * kTurn, range.upper * kTurn});
    const Tensor cos = angles.cos();
    const Tensor sin = angles.sin();
    const double width = last_column(images);
    const double height = last_row(images);
    return {cos, -sin, (width - (cos * width - sin * height)) / 2,
            sin, cos,  (height - (sin * width + cos * height)) / 2};
  }

 private:
  Factor factor_;
};

class RandomTranslationImpl final : public TransformLayer<RandomTransformOptions> {
 public:
  RandomTranslationImpl(Factor height_factor, Factor width_factor,
                        const RandomTransformOptions& options)
      : TransformLayer("RandomTranslation", options),
        height_factor_(height_factor),
        width_factor_(width_factor) {
    const auto check = [](const char* option, const Factor& factor) {
      check_order("RandomTranslation", option, factor);
      check_within("RandomTranslation", option, factor, 1);
    };
    check("height_factor", height_factor);
    check("width_factor", width_factor);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      translation_fields(field, height_factor_, width_factor_, options_);
    });
  }

 protected:
  std::vector<Tensor> columns(const Tensor& images) override {
    const Tensor down =
        draw_each(images, internal::symmetric_range(height_factor_)) * (last_row(images) + 1);
    const Tensor right =
        draw_each(images, internal::symmetric_range(width_factor_)) * (last_column(images) + 1);
    const Tensor one = at::ones_like(down);
    const Tensor zero = at::zeros_like(down);
    return {one, zero, -right, zero, one, -down};
  }

 private:
  Factor height_factor_;
  Factor width_factor_;
};

class RandomZoomImpl final : public TransformLayer<RandomZoomOptions> {
 public:
  RandomZoomImpl(Factor height_factor, const RandomZoomOptions& options)
      : TransformLayer("RandomZoom", options), height_factor_(height_factor) {
    check_within("RandomZoom", "height_factor", height_factor, 1);
    if (options.width_factor) {
      check_within("RandomZoom", "width_factor", *options.width_factor, HUGE_VAL);
    }
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { zoom_fields(field, height_factor_, options_); });
  }

 protected:
  std::vector<Tensor> columns(const Tensor& images) override {
    const Tensor down = zooms(images, height_factor_);
    const Tensor right = options_.width_factor ? zooms(images, *options_.width_factor) : down;
    const Tensor zero = at::zeros_like(down);
    return {right, zero, (1 - right) * (last_column(images) / 2),
            zero,  down, (1 - down) * (last_row(images) / 2)};
  }

 private:
  Tensor zooms(const Tensor& images, const Factor& factor) const {
    const FactorRange range = internal::symmetric_range(factor);
    return draw_each(images, {1 + range.lower, 1 + range.upper});
  }

  Factor height_factor_;
};

}  // namespace

RandomRotation::RandomRotation(Factor factor, RandomTransformOptions options)
    : LayerHandle(std::make_shared<RandomRotationImpl>(factor, options)) {}

RandomTranslation::RandomTranslation(Factor height_factor, Factor width_factor,
                                     RandomTransformOptions options)
    : LayerHandle(std::make_shared<RandomTranslationImpl>(height_factor, width_factor, options)) {}

RandomZoom::RandomZoom(Factor height_factor, RandomZoomOptions options)
    : LayerHandle(std::make_shared<RandomZoomImpl>(height_factor, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_random_rotation(FieldReader& field) {
  layers::Factor factor;
  layers::RandomTransformOptions options;
  field.common(options);
  layers::rotation_fields(field, factor, options);
  return layers::RandomRotation(factor, std::move(options));
}

layers::LayerHandle read_random_translation(FieldReader& field) {
  layers::Factor height_factor;
  layers::Factor width_factor;
  layers::RandomTransformOptions options;
  field.common(options);
  layers::translation_fields(field, height_factor, width_factor, options);
  return layers::RandomTranslation(height_factor, width_factor, std::move(options));
}

layers::LayerHandle read_random_zoom(FieldReader& field) {
  layers::Factor height_factor;
  layers::RandomZoomOptions options;
  field.common(options);
  layers::zoom_fields(field, height_factor, options);
  return layers::RandomZoom(height_factor, std::move(options));
}

}  // namespace cohort::internal
