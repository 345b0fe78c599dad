// Pooling of sequences, images and volumes by windows.
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/ones.h>

#include <array>
#include <limits>
#include <utility>

#include "cohort/keras/base/policy.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/keras/layers/convolution/conv_fields.h"
#include "cohort/keras/layers/convolution/pooling1d.h"
#include "cohort/keras/layers/convolution/pooling2d.h"
#include "cohort/keras/layers/convolution/pooling3d.h"
#include "cohort/keras/layers/convolution/windows.h"
#include "cohort/ops/max_pool.h"

namespace cohort::keras::layers {
namespace {

using internal::Border;
using internal::Padding;
using internal::Windows;

// Both take [batch, channels, spatial..], of two or three spatial axes.
Tensor max_pool(const Tensor& input, const Windows& windows, const Border& border) {
  const bool of_images = windows.rank() == 2;
  const auto pool = of_images ? at::max_pool2d : at::max_pool3d;
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const bool pads_itself = of_images && border.is_symmetric();
  const Tensor x = pads_itself ? input : internal::pad(input, border, kLowest);
  const c10::SmallVector<int64_t, 3> none(windows.size.size(), 0);
  return pool(x, windows.size, windows.strides, pads_itself ? border.before : none,
              windows.dilation, /*ceil_mode=*/false);
}

Tensor average_pool(const Tensor& input, const Windows& windows, const Border& border) {
  const auto pool = [&](const Tensor& x, at::IntArrayRef padding) {
    return windows.rank() == 2 ? at::avg_pool2d(x, windows.size, windows.strides, padding,
                                                /*ceil_mode=*/false, /*count_include_pad=*/false)
                               : at::avg_pool3d(x, windows.size, windows.strides, padding,
                                                /*ceil_mode=*/false, /*count_include_pad=*/false);
  };
  if (border.is_symmetric()) return pool(input, border.before);
  // The means over windows with zeros in them, over the share of elements that are not padding.
  c10::SmallVector<int64_t, 5> shape(input.sizes().begin(), input.sizes().end());
  shape[0] = shape[1] = 1;
  const Tensor inside = at::ones(shape, input.options());
  const c10::SmallVector<int64_t, 3> none(windows.size.size(), 0);
  return pool(internal::pad(input, border, 0), none) / pool(internal::pad(inside, border, 0), none);
}

// Windows of sequences as those of images of one row.
Windows of_rows(Windows windows) {
  for (internal::Sizes* sizes : {&windows.size, &windows.strides, &windows.dilation}) {
    if (sizes->size() == 1) sizes->insert(sizes->begin(), 1);
  }
  return windows;
}

template <class Fields, class Size, class Options>
void pooling_fields(Fields& field, Size& pool_size, Options& options) {
  window_field(field, "pool_size", pool_size);
  window_field(field, "strides", options.strides);
  field("padding", options.padding);
  field("data_format", options.data_format);
}

// Size: int64_t, Size2D or Size3D.
template <class Size, class Options>
class PoolingImpl : public Layer {
 public:
  using Pool = Tensor (*)(const Tensor& input, const Windows& windows, const Border& border);

  PoolingImpl(const char* class_name, Size pool_size, const Options& options, Pool pool)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        pool_size_(pool_size),
        given_(internal::checked_windows(
            {.layer = class_name,
             .size_name = "pool_size",
             .size = internal::sizes_of(pool_size),
             .strides = internal::sizes_of(options.strides.value_or(pool_size)),
             .padding = options.padding,
             .data_format = options.data_format})),
        options_(saved(options, pool_size)),
        windows_(of_rows(given_)),
        pool_(pool) {
    set_input_spec(internal::input_spec_of(given_));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { pooling_fields(field, pool_size_, options_); });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    const bool is_sequence = given_.rank() == 1;
    if (pool_ == max_pool && !given_.channels_first && windows_.rank() == 2) {
      const Tensor images = is_sequence ? input.unsqueeze(1) : input;
      if (tiles(images)) {
        const Tensor y = internal::max_pool_tiles(images, tile());
        return is_sequence ? y.squeeze(1) : y;
      }
    }
    Tensor x = internal::to_channels_first(input, given_.channels_first);
    if (is_sequence) x = x.unsqueeze(2);
    // On CPUs libtorch pools no volumes of bfloat16.
    if (given_.rank() == 3 && x.is_cpu()) x = internal::widened(x);
    const Tensor y = pool_(x, windows_, internal::border_of(x, windows_)).to(input.scalar_type());
    return internal::from_channels_first(is_sequence ? y.squeeze(2) : y, given_.channels_first);
  }

  const Windows& windows() const { return given_; }
  std::array<int64_t, 2> size() const { return {given_.size[0], given_.size[1]}; }
  std::array<int64_t, 2> strides() const { return {given_.strides[0], given_.strides[1]}; }
  bool is_same() const { return given_.padding == Padding::kSame; }

 private:
  // The options as Keras saves them.
  static Options saved(Options options, const Size& pool_size) {
    options.strides = options.strides.value_or(pool_size);
    options.padding = internal::lower(options.padding);
    options.data_format = internal::lower(options.data_format);
    return options;
  }
  internal::Tile tile() const { return {windows_.size[0], windows_.size[1]}; }
  // Whether the windows lie side by side, without a border.
  bool tiles(const Tensor& images) const {
    const bool pads = is_same() && (images.size(1) % windows_.size[0] != 0 ||
                                    images.size(2) % windows_.size[1] != 0);
    return windows_.size == windows_.strides && !pads &&
           internal::can_max_pool_tiles(images, tile());
  }

  const Size pool_size_;
  const Windows given_;
  const Options options_;
  const Windows windows_;  // of two axes or three
  const Pool pool_;
};

using Pooling2DImpl = PoolingImpl<Size2D, Pooling2DOptions>;

class MaxPooling2DImpl final : public Pooling2DImpl, public internal::DescribesOperation {
 public:
  MaxPooling2DImpl(Size2D pool_size, const Pooling2DOptions& options)
      : Pooling2DImpl("MaxPooling2D", pool_size, options, max_pool) {}

  internal::LayerOperation operation(bool) const override {
    if (windows().channels_first) return {.why_not = "its channels come first"};
    return {.operations = {internal::plan::MaxPooling{
                .size = size(), .strides = strides(), .same = is_same()}}};
  }
};

class AveragePooling2DImpl final : public Pooling2DImpl, public internal::DescribesOperation {
 public:
  AveragePooling2DImpl(Size2D pool_size, const Pooling2DOptions& options)
      : Pooling2DImpl("AveragePooling2D", pool_size, options, average_pool) {}

  internal::LayerOperation operation(bool) const override {
    if (windows().channels_first) return {.why_not = "its channels come first"};
    return {.operations = {internal::plan::AveragePooling{
                .size = size(), .strides = strides(), .same = is_same()}}};
  }
};

}  // namespace

MaxPooling1D::MaxPooling1D(int64_t pool_size, Pooling1DOptions options)
    : LayerHandle(std::make_shared<PoolingImpl<int64_t, Pooling1DOptions>>(
          "MaxPooling1D", pool_size, options, max_pool)) {}

AveragePooling1D::AveragePooling1D(int64_t pool_size, Pooling1DOptions options)
    : LayerHandle(std::make_shared<PoolingImpl<int64_t, Pooling1DOptions>>(
          "AveragePooling1D", pool_size, options, average_pool)) {}

MaxPooling2D::MaxPooling2D(Size2D pool_size, Pooling2DOptions options)
    : LayerHandle(std::make_shared<MaxPooling2DImpl>(pool_size, options)) {}

AveragePooling2D::AveragePooling2D(Size2D pool_size, Pooling2DOptions options)
    : LayerHandle(std::make_shared<AveragePooling2DImpl>(pool_size, options)) {}

MaxPooling3D::MaxPooling3D(Size3D pool_size, Pooling3DOptions options)
    : LayerHandle(std::make_shared<PoolingImpl<Size3D, Pooling3DOptions>>("MaxPooling3D", pool_size,
                                                                          options, max_pool)) {}

AveragePooling3D::AveragePooling3D(Size3D pool_size, Pooling3DOptions options)
    : LayerHandle(std::make_shared<PoolingImpl<Size3D, Pooling3DOptions>>(
          "AveragePooling3D", pool_size, options, average_pool)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Pooling, class Size, class Options>
layers::LayerHandle read_pooling(FieldReader& field) {
  Size pool_size = 2;
  Options options;
  field.common(options);
  layers::pooling_fields(field, pool_size, options);
  return Pooling(pool_size, options);
}

}  // namespace

layers::LayerHandle read_max_pooling1d(FieldReader& field) {
  return read_pooling<layers::MaxPooling1D, int64_t, layers::Pooling1DOptions>(field);
}
layers::LayerHandle read_average_pooling1d(FieldReader& field) {
  return read_pooling<layers::AveragePooling1D, int64_t, layers::Pooling1DOptions>(field);
}
layers::LayerHandle read_max_pooling2d(FieldReader& field) {
  return read_pooling<layers::MaxPooling2D, layers::Size2D, layers::Pooling2DOptions>(field);
}
layers::LayerHandle read_average_pooling2d(FieldReader& field) {
  return read_pooling<layers::AveragePooling2D, layers::Size2D, layers::Pooling2DOptions>(field);
}
layers::LayerHandle read_max_pooling3d(FieldReader& field) {
  return read_pooling<layers::MaxPooling3D, layers::Size3D, layers::Pooling3DOptions>(field);
}
layers::LayerHandle read_average_pooling3d(FieldReader& field) {
  return read_pooling<layers::AveragePooling3D, layers::Size3D, layers::Pooling3DOptions>(field);
}

}  // namespace cohort::internal
