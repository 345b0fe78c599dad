#include "cohort/keras/layers/images/random_flip.h"

#include <ATen/ops/where.h>

#include <memory>
#include <utility>

#include "cohort/core/text.h"
#include "cohort/image/crop.h"
#include "cohort/keras/layers/images/image_layer.h"

namespace cohort::keras::layers {
namespace {

constexpr const char* kHorizontal = "horizontal";
constexpr const char* kVertical = "vertical";
constexpr const char* kBothWays = "horizontal_and_vertical";

template <class Fields, class Mode, class Options>
void flip_fields(Fields& field, Mode& mode, Options& options) {
  field("mode", mode);
  field("seed", options.seed);
}

template <class Fields, class Size, class Options>
void crop_fields(Fields& field, Size& height, Size& width, Options& options) {
  field("height", height);
  field("width", width);
  field("seed", options.seed);
}

class RandomFlipImpl final : public internal::RandomImageLayer {
 public:
  RandomFlipImpl(std::string mode, const RandomImageOptions& options)
      : RandomImageLayer("RandomFlip", {.name = options.name, .dtype = options.dtype},
                         options.seed),
        mode_(std::move(mode)),
        options_(options) {
    if (mode_ == kHorizontal || mode_ == kVertical || mode_ == kBothWays) return;
    throw InvalidArgumentError(internal::str("RandomFlip: no mode is called ",
                                             internal::quoted(mode_), "; there are: ", kHorizontal,
                                             ", ", kVertical, ", ", kBothWays));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this,
                                  [this](auto& field) { flip_fields(field, mode_, options_); });
  }

 protected:
  Tensor changed(const Tensor& images) override {
    const Tensor across = mode_ == kVertical ? images : flipped(images, -2);
    return mode_ == kHorizontal ? across : flipped(across, -3);
  }

 private:
  Tensor flipped(const Tensor& images, int64_t axis) const {
    const Tensor flips = draw_each(images, {0, 1}).gt(0.5).reshape({-1, 1, 1, 1});
    return at::where(images.dim() == 4 ? flips : flips[0], images.flip({axis}), images);
  }

  std::string mode_;
  RandomImageOptions options_;
};

class RandomCropImpl final : public internal::RandomImageLayer {
 public:
  RandomCropImpl(int64_t height, int64_t width, const RandomImageOptions& options)
      : RandomImageLayer("RandomCrop", {.name = options.name, .dtype = options.dtype},
                         options.seed),
        height_(height),
        width_(width),
        options_(options) {
    internal::check_output_size("RandomCrop", height, width);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { crop_fields(field, height_, width_, options_); });
  }

 protected:
  Tensor changed(const Tensor& images) override {
    const int64_t rows = images.size(-3) - height_ + 1;
    const int64_t columns = images.size(-2) - width_ + 1;
    if (rows < 1 || columns < 1) return unchanged(images);
    const int64_t above = draw_below(rows);
    return cohort::image::crop_to_bounding_box(images, above, draw_below(columns), height_, width_);
  }
  Tensor unchanged(const Tensor& images) override {
    return in_compute_dtype(internal::smart_resize(images, height_, width_));
  }

 private:
  int64_t height_;
  int64_t width_;
  RandomImageOptions options_;
};

}  // namespace

RandomFlip::RandomFlip(std::string mode, RandomImageOptions options)
    : LayerHandle(std::make_shared<RandomFlipImpl>(std::move(mode), options)) {}

RandomCrop::RandomCrop(int64_t height, int64_t width, RandomImageOptions options)
    : LayerHandle(std::make_shared<RandomCropImpl>(height, width, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_random_flip(FieldReader& field) {
  std::string mode = layers::kBothWays;
  layers::RandomImageOptions options;
  field.common(options);
  layers::flip_fields(field, mode, options);
  return layers::RandomFlip(std::move(mode), std::move(options));
}

layers::LayerHandle read_random_crop(FieldReader& field) {
  int64_t height = 0;
  int64_t width = 0;
  layers::RandomImageOptions options;
  field.common(options);
  layers::crop_fields(field, height, width, options);
  return layers::RandomCrop(height, width, std::move(options));
}

}  // namespace cohort::internal
