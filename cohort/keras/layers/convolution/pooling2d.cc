#include "cohort/keras/layers/convolution/pooling2d.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>

#include <array>
#include <limits>
#include <utility>

#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/ops/max_pool.h"

namespace cohort::keras::layers {
namespace {

using internal::Border;
using internal::Padding;
using internal::Window;

class Pooling2DImpl : public Layer {
 public:
  Pooling2DImpl(const std::string& class_name, Size2D pool_size, const Pooling2DOptions& options)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        window_{pool_size, options.strides.value_or(pool_size)},
        padding_(internal::parse_padding(options.padding, class_name)) {
    internal::check_positive(window_.size, class_name, "pool_size");
    internal::check_positive(window_.strides, class_name, "strides");
    set_input_spec(
        {.rank = 4, .floating = true, .window = internal::whole_window(window_, padding_)});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("pool_size", window_.size);
      field("strides", window_.strides);
      field("padding", std::string(padding_ == Padding::kValid ? "valid" : "same"));
      field.always("data_format", "channels_last");
    });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    const Tensor images = internal::to_channels_first(input);
    const Border border =
        padding_ == Padding::kSame ? internal::same_border(images, window_) : Border{};
    return internal::to_channels_last(pool(images, border));
  }

  // images: [batch, channels, height, width].
  virtual Tensor pool(const Tensor& images, const Border& border) const = 0;

  // Whether windows reach over the border.
  bool pads(const Tensor& images) const {
    return padding_ == Padding::kSame &&
           (images.size(1) % window_.size.height != 0 || images.size(2) % window_.size.width != 0);
  }

  Padding padding() const { return padding_; }
  std::array<int64_t, 2> size() const { return {window_.size.height, window_.size.width}; }
  std::array<int64_t, 2> strides() const { return {window_.strides.height, window_.strides.width}; }

 private:
  Window window_;
  Padding padding_;
};

class MaxPooling2DImpl final : public Pooling2DImpl, public internal::DescribesOperation {
 public:
  using Pooling2DImpl::Pooling2DImpl;

  internal::LayerOperation operation(bool) const override {
    return {.operations = {internal::plan::MaxPooling{
                .size = size(), .strides = strides(), .same = padding() == Padding::kSame}}};
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions& options) override {
    return tiles(input) ? internal::max_pool_tiles(input, tile())
                        : Pooling2DImpl::call(input, options);
  }

  Tensor pool(const Tensor& images, const Border& border) const override {
    if (border.symmetric()) {
      return at::max_pool2d(images, size(), strides(), {border.top, border.left});
    }
    constexpr double kLowest = -std::numeric_limits<double>::infinity();
    return at::max_pool2d(internal::pad(images, border, kLowest), size(), strides());
  }

 private:
  // Whether the windows lie side by side, without a border.
  bool tiles(const Tensor& images) const {
    return size() == strides() && !pads(images) && internal::can_max_pool_tiles(images, tile());
  }
  internal::Tile tile() const { return {size()[0], size()[1]}; }
};

class AveragePooling2DImpl final : public Pooling2DImpl, public internal::DescribesOperation {
 public:
  using Pooling2DImpl::Pooling2DImpl;

  internal::LayerOperation operation(bool) const override {
    return {.operations = {internal::plan::AveragePooling{
                .size = size(), .strides = strides(), .same = padding() == Padding::kSame}}};
  }

 protected:
  Tensor pool(const Tensor& images, const Border& border) const override {
    if (border.symmetric()) {
      return at::avg_pool2d(images, size(), strides(), {border.top, border.left},
                            /*ceil_mode=*/false, /*count_include_pad=*/false);
    }
    // The means over windows with zeros in them, over the share of pixels that are not padding.
    const Tensor inside = at::ones({1, 1, images.size(2), images.size(3)}, images.options());
    return at::avg_pool2d(internal::pad(images, border, 0), size(), strides()) /
           at::avg_pool2d(internal::pad(inside, border, 0), size(), strides());
  }
};

}  // namespace

MaxPooling2D::MaxPooling2D(Size2D pool_size, Pooling2DOptions options)
    : LayerHandle(std::make_shared<MaxPooling2DImpl>("MaxPooling2D", pool_size, options)) {}

AveragePooling2D::AveragePooling2D(Size2D pool_size, Pooling2DOptions options)
    : LayerHandle(std::make_shared<AveragePooling2DImpl>("AveragePooling2D", pool_size, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Pooling>
layers::LayerHandle read_pooling2d(FieldReader& field) {
  layers::Size2D pool_size = 2;
  layers::Pooling2DOptions options;
  field.common(options);
  field("pool_size", pool_size);
  field("strides", options.strides);
  field("padding", options.padding);
  field.always("data_format", "channels_last");
  return Pooling(pool_size, options);
}

}  // namespace

layers::LayerHandle read_max_pooling2d(FieldReader& field) {
  return read_pooling2d<layers::MaxPooling2D>(field);
}
layers::LayerHandle read_average_pooling2d(FieldReader& field) {
  return read_pooling2d<layers::AveragePooling2D>(field);
}

}  // namespace cohort::internal
