#include "cohort/keras/layers/dropout.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/kept_elements.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/keras/layers/base/replica_generators.h"
#include "cohort/keras/layers/convolution/windows.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

template <class Fields, class Rate, class Options>
void dropout_fields(Fields& field, Rate& rate, Options& options) {
  field("rate", rate);
  if constexpr (requires { options.noise_shape; }) {
    field.open_sizes("noise_shape", options.noise_shape);
  } else {
    field.always("noise_shape", nullptr);
  }
  field("seed", options.seed);
  if constexpr (requires { options.data_format; }) {
    field.unless("data_format", options.data_format, Options().data_format);
  }
}

// What all kinds of dropout do; a kind says what shares its fate.
template <class Options>
class DropoutLayer : public Layer {
 public:
  DropoutLayer(const char* class_name, double rate, const Options& options)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        rate_(rate),
        options_(options),
        generator_(options.seed) {
    internal::check_rate(rate, class_name, "rate");
    set_input_spec({.floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this,
                                  [this](auto& field) { dropout_fields(field, rate_, options_); });
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    std::vector<train::TrackableChild> children = Layer::checkpoint_children();
    generator_.add_to(children);
    return children;
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions& options) override {
    if (!*options.training || rate_ == 0) return input;
    if (rate_ == 1) return internal::keep_mask(input, input * 0);
    const Tensor kept = draw(noise_shape(input.sizes()), input.options());
    return internal::keep_mask(input, input * kept / (1 - rate_));
  }

  // The shape of what is drawn for an input of this one.
  virtual Shape noise_shape(at::IntArrayRef input) const = 0;
  // What is kept.
  Tensor draw(at::IntArrayRef shape, const at::TensorOptions& options) const {
    return internal::kept_elements(generator_.get(), shape, rate_, options);
  }

  const double rate_;
  const Options options_;

 private:
  const internal::LayerGenerator generator_;
};

class DropoutImpl final : public DropoutLayer<DropoutOptions>, public internal::DescribesOperation {
 public:
  using DropoutLayer::DropoutLayer;

  internal::LayerOperation operation(bool training) const override {
    if (rate_ == 0) return {};
    if (rate_ == 1) return {.why_not = "it drops everything"};
    if (!options_.noise_shape.empty()) return {.why_not = "it has a noise_shape"};
    if (!training) return {.depends_on_training = true};
    return {.operations = {internal::plan::Dropout{.rate = rate_}},
            .depends_on_training = true,
            .draw = [this](at::IntArrayRef shape) { return draw(shape, float32); }};
  }

 protected:
  Shape noise_shape(at::IntArrayRef input) const override {
    return internal::noise_shape(options_.noise_shape, input, name());
  }
};

// rank: of the input, with batch and channels.
template <class Options>
class SpatialDropoutImpl final : public DropoutLayer<Options> {
 public:
  SpatialDropoutImpl(const char* class_name, int64_t rank, double rate, const Options& options)
      : DropoutLayer<Options>(class_name, rate, options), channel_axis_(rank - 1) {
    if constexpr (requires { options.data_format; }) {
      if (internal::is_channels_first(options.data_format, class_name)) channel_axis_ = 1;
    }
    this->set_input_spec({.rank = rank, .floating = true});
  }

 protected:
  Shape noise_shape(at::IntArrayRef input) const override {
    Shape shape(input.size(), 1);
    const auto channels = static_cast<size_t>(channel_axis_);
    shape[0] = input[0];
    shape[channels] = input[channels];
    return shape;
  }

 private:
  int64_t channel_axis_;
};

constexpr int64_t kSequenceRank = 3;
constexpr int64_t kImageRank = 4;
constexpr int64_t kVolumeRank = 5;

}  // namespace

Dropout::Dropout(double rate, DropoutOptions options)
    : LayerHandle(std::make_shared<DropoutImpl>("Dropout", rate, options)) {}

SpatialDropout1D::SpatialDropout1D(double rate, SpatialDropout1DOptions options)
    : LayerHandle(std::make_shared<SpatialDropoutImpl<SpatialDropout1DOptions>>(
          "SpatialDropout1D", kSequenceRank, rate, options)) {}

SpatialDropout2D::SpatialDropout2D(double rate, SpatialDropoutOptions options)
    : LayerHandle(std::make_shared<SpatialDropoutImpl<SpatialDropoutOptions>>(
          "SpatialDropout2D", kImageRank, rate, options)) {}

SpatialDropout3D::SpatialDropout3D(double rate, SpatialDropoutOptions options)
    : LayerHandle(std::make_shared<SpatialDropoutImpl<SpatialDropoutOptions>>(
          "SpatialDropout3D", kVolumeRank, rate, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Dropout, class Options>
layers::LayerHandle read_any_dropout(FieldReader& field) {
  double rate = 0;
  Options options;
  field.common(options);
  layers::dropout_fields(field, rate, options);
  return Dropout(rate, std::move(options));
}

}  // namespace

layers::LayerHandle read_dropout(FieldReader& field) {
  return read_any_dropout<layers::Dropout, layers::DropoutOptions>(field);
}
layers::LayerHandle read_spatial_dropout1d(FieldReader& field) {
  return read_any_dropout<layers::SpatialDropout1D, layers::SpatialDropout1DOptions>(field);
}
layers::LayerHandle read_spatial_dropout2d(FieldReader& field) {
  return read_any_dropout<layers::SpatialDropout2D, layers::SpatialDropoutOptions>(field);
}
layers::LayerHandle read_spatial_dropout3d(FieldReader& field) {
  return read_any_dropout<layers::SpatialDropout3D, layers::SpatialDropoutOptions>(field);
}

}  // namespace cohort::internal
