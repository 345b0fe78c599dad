#include "cohort/keras/layers/images/resizing.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "cohort/core/text.h"
#include "cohort/image/crop.h"
#include "cohort/image/resize.h"
#include "cohort/keras/layers/images/image_layer.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

void check_interpolation(const std::string& where, const std::string& method) {
  constexpr std::array kMethods = {"bilinear", "nearest",  "bicubic",  "area",
                                   "lanczos3", "lanczos5", "gaussian", "mitchellcubic"};
  if (std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end()) return;
  throw InvalidArgumentError(str(where, ": no interpolation is called ", internal::quoted(method),
                                 "; there are: bilinear, nearest, bicubic, area, lanczos3, ",
                                 "lanczos5, gaussian, mitchellcubic"));
}

template <class Fields, class Size>
void size_fields(Fields& field, Size& height, Size& width) {
  field("height", height);
  field("width", width);
}

template <class Fields, class Options>
void resizing_fields(Fields& field, Options& options) {
  field("interpolation", options.interpolation);
  field("crop_to_aspect_ratio", options.crop_to_aspect_ratio);
}

class ResizingImpl final : public internal::ImageLayer {
 public:
  ResizingImpl(int64_t height, int64_t width, const ResizingOptions& options)
      : ImageLayer("Resizing", {.name = options.name, .dtype = options.dtype}),
        height_(height),
        width_(width),
        options_(options),
        method_(internal::lower(options.interpolation)) {
    internal::check_output_size("Resizing", height, width);
    check_interpolation("Resizing", method_);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      size_fields(field, height_, width_);
      resizing_fields(field, options_);
    });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    check_images(input);
    const Tensor images = method_ == "nearest" ? in_compute_dtype(input) : input.to(float32);
    const Tensor resized =
        options_.crop_to_aspect_ratio
            ? internal::smart_resize(images, height_, width_, method_)
            : cohort::image::resize(images, {height_, width_}, {.method = method_});
    return in_compute_dtype(resized);
  }

 private:
  int64_t height_;
  int64_t width_;
  ResizingOptions options_;
  std::string method_;
};

class CenterCropImpl final : public internal::ImageLayer {
 public:
  CenterCropImpl(int64_t height, int64_t width, const CenterCropOptions& options)
      : ImageLayer("CenterCrop", {.name = options.name, .dtype = options.dtype}),
        height_(height),
        width_(width) {
    internal::check_output_size("CenterCrop", height, width);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this,
                                  [this](auto& field) { size_fields(field, height_, width_); });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    check_images(input);
    const Tensor images = in_compute_dtype(input);
    const int64_t above = images.size(-3) - height_;
    const int64_t left = images.size(-2) - width_;
    if (above < 0 || left < 0) {
      return in_compute_dtype(internal::smart_resize(images, height_, width_));
    }
    return cohort::image::crop_to_bounding_box(images, above / 2, left / 2, height_, width_);
  }

 private:
  int64_t height_;
  int64_t width_;
};

}  // namespace

Resizing::Resizing(int64_t height, int64_t width, ResizingOptions options)
    : LayerHandle(std::make_shared<ResizingImpl>(height, width, options)) {}

CenterCrop::CenterCrop(int64_t height, int64_t width, CenterCropOptions options)
    : LayerHandle(std::make_shared<CenterCropImpl>(height, width, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_resizing(FieldReader& field) {
  int64_t height = 0;
  int64_t width = 0;
  layers::ResizingOptions options;
  field.common(options);
  layers::size_fields(field, height, width);
  layers::resizing_fields(field, options);
  return layers::Resizing(height, width, std::move(options));
}

layers::LayerHandle read_center_crop(FieldReader& field) {
  int64_t height = 0;
  int64_t width = 0;
  layers::CenterCropOptions options;
  field.common(options);
  layers::size_fields(field, height, width);
  return layers::CenterCrop(height, width, std::move(options));
}

}  // namespace cohort::internal
