#include "cohort/keras/layers/convolution/pooling1d.h"

#include <utility>

#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/convolution/pooling2d.h"

namespace cohort::keras::layers {
namespace {

// A sequence is an image of one row.
class Pooling1DImpl final : public Layer {
 public:
  Pooling1DImpl(const std::string& class_name, int64_t pool_size, const Pooling1DOptions& options,
                LayerHandle of_images)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        pool_size_(pool_size),
        options_(options),
        of_images_(std::move(of_images)) {
    set_input_spec({.rank = 3, .floating = true});
    if (internal::parse_padding(options.padding, class_name) == internal::Padding::kValid) {
      input_spec().window = {pool_size};
    }
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field.list_of_one("pool_size", pool_size_);
      field.list_of_one("strides", options_.strides.value_or(pool_size_));
      field("padding", options_.padding);
      field.always("data_format", "channels_last");
    });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions& options) override {
    return of_images_(input.unsqueeze(1), options).squeeze(1);
  }

 private:
  int64_t pool_size_;
  Pooling1DOptions options_;
  LayerHandle of_images_;  // has no weights, so that nobody need know of it
};

void check_sizes(const char* layer, int64_t pool_size, const Pooling1DOptions& options) {
  internal::check_positive({pool_size, pool_size}, layer, "pool_size");
  const int64_t strides = options.strides.value_or(pool_size);
  internal::check_positive({strides, strides}, layer, "strides");
  internal::parse_padding(options.padding, layer);
}

Pooling2DOptions of_rows(int64_t pool_size, const Pooling1DOptions& options) {
  return {.strides = Size2D(1, options.strides.value_or(pool_size)),
          .padding = options.padding,
          .dtype = options.dtype};
}

template <class Pooling>
std::shared_ptr<Pooling1DImpl> make_pooling(const char* layer, int64_t pool_size,
                                            const Pooling1DOptions& options) {
  check_sizes(layer, pool_size, options);
  return std::make_shared<Pooling1DImpl>(
      layer, pool_size, options, Pooling(Size2D(1, pool_size), of_rows(pool_size, options)));
}

}  // namespace

MaxPooling1D::MaxPooling1D(int64_t pool_size, Pooling1DOptions options)
    : LayerHandle(make_pooling<MaxPooling2D>("MaxPooling1D", pool_size, options)) {}

AveragePooling1D::AveragePooling1D(int64_t pool_size, Pooling1DOptions options)
    : LayerHandle(make_pooling<AveragePooling2D>("AveragePooling1D", pool_size, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Pooling>
layers::LayerHandle read_pooling1d(FieldReader& field) {
  int64_t pool_size = 2;
  layers::Pooling1DOptions options;
  field.common(options);
  field.list_of_one("pool_size", pool_size);
  int64_t strides = pool_size;
  field.list_of_one("strides", strides);
  options.strides = strides;
  field("padding", options.padding);
  field.always("data_format", "channels_last");
  return Pooling(pool_size, options);
}

}  // namespace

layers::LayerHandle read_max_pooling1d(FieldReader& field) {
  return read_pooling1d<layers::MaxPooling1D>(field);
}
layers::LayerHandle read_average_pooling1d(FieldReader& field) {
  return read_pooling1d<layers::AveragePooling1D>(field);
}

}  // namespace cohort::internal
