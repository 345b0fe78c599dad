#include "cohort/keras/layers/pooling1d.h"

#include <utility>

#include "cohort/keras/layers/pooling2d.h"
#include "cohort/keras/layers/window.h"

namespace cohort::keras::layers {
namespace {

// A sequence is an image of one row.
class Pooling1DImpl final : public Layer {
 public:
  Pooling1DImpl(const std::string& class_name, const Pooling1DOptions& options,
                LayerHandle of_images)
      : Layer(class_name, {.name = options.name}), of_images_(std::move(of_images)) {
    set_input_spec({.rank = 3, .floating = true});
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions& options) override {
    return of_images_(input.unsqueeze(1), options).squeeze(1);
  }

 private:
  LayerHandle of_images_;  // has no weights, so that nobody need know of it
};

void check_sizes(const char* layer, int64_t pool_size, const Pooling1DOptions& options) {
  internal::check_positive({pool_size, pool_size}, layer, "pool_size");
  const int64_t strides = options.strides.value_or(pool_size);
  internal::check_positive({strides, strides}, layer, "strides");
  internal::parse_padding(options.padding, layer);
}

Pooling2DOptions of_rows(int64_t pool_size, const Pooling1DOptions& options) {
  return {.strides = Size2D(1, options.strides.value_or(pool_size)), .padding = options.padding};
}

class GlobalPooling1DImpl final : public Layer {
 public:
  using Pool = Tensor (*)(const Tensor& sequences);
  GlobalPooling1DImpl(const char* class_name, const GlobalPooling1DOptions& options, Pool pool)
      : Layer(class_name, {.name = options.name}), pool_(pool) {
    set_input_spec({.rank = 3, .floating = true});
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override { return pool_(input); }

 private:
  Pool pool_;
};

template <class Pooling>
std::shared_ptr<Pooling1DImpl> make_pooling(const char* layer, int64_t pool_size,
                                            const Pooling1DOptions& options) {
  check_sizes(layer, pool_size, options);
  return std::make_shared<Pooling1DImpl>(
      layer, options, Pooling(Size2D(1, pool_size), of_rows(pool_size, options)));
}

}  // namespace

MaxPooling1D::MaxPooling1D(int64_t pool_size, Pooling1DOptions options)
    : LayerHandle(make_pooling<MaxPooling2D>("MaxPooling1D", pool_size, options)) {}

AveragePooling1D::AveragePooling1D(int64_t pool_size, Pooling1DOptions options)
    : LayerHandle(make_pooling<AveragePooling2D>("AveragePooling1D", pool_size, options)) {}

GlobalAveragePooling1D::GlobalAveragePooling1D(GlobalPooling1DOptions options)
    : LayerHandle(std::make_shared<GlobalPooling1DImpl>(
          "GlobalAveragePooling1D", options, [](const Tensor& x) { return x.mean({1}); })) {}

GlobalMaxPooling1D::GlobalMaxPooling1D(GlobalPooling1DOptions options)
    : LayerHandle(std::make_shared<GlobalPooling1DImpl>(
          "GlobalMaxPooling1D", options, [](const Tensor& x) { return x.amax({1}); })) {}

}  // namespace cohort::keras::layers
