// Pooling over all steps of a sequence, or all of an image or volume.
#include <utility>
#include <vector>

#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/fusion.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/keras/layers/convolution/pooling1d.h"
#include "cohort/keras/layers/convolution/pooling2d.h"
#include "cohort/keras/layers/convolution/pooling3d.h"
#include "cohort/keras/layers/convolution/windows.h"

namespace cohort::keras::layers {
namespace {

Tensor mean(const Tensor& input, at::IntArrayRef axes, bool keepdims) {
  return input.mean(axes, keepdims);
}
Tensor maximum(const Tensor& input, at::IntArrayRef axes, bool keepdims) {
  return input.amax(axes, keepdims);
}

template <class Fields, class Options>
void global_pooling_fields(Fields& field, Options& options) {
  field("data_format", options.data_format);
  field("keepdims", options.keepdims);
}

constexpr int64_t kSequences = 3;
constexpr int64_t kImages = 4;
constexpr int64_t kVolumes = 5;

class GlobalPoolingImpl : public Layer {
 public:
  using Pool = Tensor (*)(const Tensor& input, at::IntArrayRef axes, bool keepdims);
  // Over the axes beside the batch and the channels; `rank` counts all.
  template <class Options>
  GlobalPoolingImpl(const char* class_name, int64_t rank, const Options& options, Pool pool)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        keepdims_(options.keepdims),
        channels_first_(internal::is_channels_first(options.data_format, class_name)),
        pool_(pool),
        averages_sequences_(rank == kSequences && pool == mean && !channels_first_) {
    set_input_spec({.rank = rank, .floating = true});
    const int64_t first = channels_first_ ? 2 : 1;
    for (int64_t axis = first; axis < first + rank - 2; ++axis) axes_.push_back(axis);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("data_format", std::string(channels_first_ ? "channels_first" : "channels_last"));
      field("keepdims", keepdims_);
    });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    const Tensor mask = averages_sequences_ ? internal::mask_of(input) : Tensor();
    if (!mask.defined()) return pool_(input, axes_, keepdims_);
    const Tensor counts = internal::mask_factors(mask, input);
    return (input * counts).sum(axes_, keepdims_) / counts.sum(axes_, keepdims_).clamp_min(1);
  }

 private:
  std::vector<int64_t> axes_;
  bool keepdims_;
  bool channels_first_;
  Pool pool_;
  bool averages_sequences_;  // of the steps that count
};

class AverageOfSequences final : public GlobalPoolingImpl, public internal::AveragesSequences {
 public:
  explicit AverageOfSequences(const GlobalPooling1DOptions& options)
      : GlobalPoolingImpl("GlobalAveragePooling1D", kSequences, options, mean) {}
};

class AverageOfImages final : public GlobalPoolingImpl, public internal::DescribesOperation {
 public:
  explicit AverageOfImages(const GlobalPooling2DOptions& options)
      : GlobalPoolingImpl("GlobalAveragePooling2D", kImages, options, mean),
        keepdims_(options.keepdims),
        channels_first_(internal::is_channels_first(options.data_format, "")) {}

  internal::LayerOperation operation(bool) const override {
    if (channels_first_) return {.why_not = "its channels come first"};
    return {.operations = {internal::plan::GlobalAverage{.keeps_axes = keepdims_}}};
  }

 private:
  const bool keepdims_;
  const bool channels_first_;
};

}  // namespace

GlobalAveragePooling1D::GlobalAveragePooling1D(GlobalPooling1DOptions options)
    : LayerHandle(options.keepdims || options.data_format != GlobalPooling1DOptions().data_format
                      ? std::shared_ptr<Layer>(std::make_shared<GlobalPoolingImpl>(
                            "GlobalAveragePooling1D", kSequences, options, mean))
                      : std::make_shared<AverageOfSequences>(options)) {}

GlobalMaxPooling1D::GlobalMaxPooling1D(GlobalPooling1DOptions options)
    : LayerHandle(std::make_shared<GlobalPoolingImpl>("GlobalMaxPooling1D", kSequences, options,
                                                      maximum)) {}

GlobalAveragePooling2D::GlobalAveragePooling2D(GlobalPooling2DOptions options)
    : LayerHandle(std::make_shared<AverageOfImages>(options)) {}

GlobalMaxPooling2D::GlobalMaxPooling2D(GlobalPooling2DOptions options)
    : LayerHandle(
          std::make_shared<GlobalPoolingImpl>("GlobalMaxPooling2D", kImages, options, maximum)) {}

GlobalAveragePooling3D::GlobalAveragePooling3D(GlobalPooling3DOptions options)
    : LayerHandle(
          std::make_shared<GlobalPoolingImpl>("GlobalAveragePooling3D", kVolumes, options, mean)) {}

GlobalMaxPooling3D::GlobalMaxPooling3D(GlobalPooling3DOptions options)
    : LayerHandle(
          std::make_shared<GlobalPoolingImpl>("GlobalMaxPooling3D", kVolumes, options, maximum)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Pooling, class Options>
layers::LayerHandle read_global_pooling(FieldReader& field) {
  Options options;
  field.common(options);
  layers::global_pooling_fields(field, options);
  return Pooling(options);
}

}  // namespace

layers::LayerHandle read_global_average_pooling1d(FieldReader& field) {
  return read_global_pooling<layers::GlobalAveragePooling1D, layers::GlobalPooling1DOptions>(field);
}
layers::LayerHandle read_global_max_pooling1d(FieldReader& field) {
  return read_global_pooling<layers::GlobalMaxPooling1D, layers::GlobalPooling1DOptions>(field);
}
layers::LayerHandle read_global_average_pooling2d(FieldReader& field) {
  return read_global_pooling<layers::GlobalAveragePooling2D, layers::GlobalPooling2DOptions>(field);
}
layers::LayerHandle read_global_max_pooling2d(FieldReader& field) {
  return read_global_pooling<layers::GlobalMaxPooling2D, layers::GlobalPooling2DOptions>(field);
}
layers::LayerHandle read_global_average_pooling3d(FieldReader& field) {
  return read_global_pooling<layers::GlobalAveragePooling3D, layers::GlobalPooling3DOptions>(field);
}
layers::LayerHandle read_global_max_pooling3d(FieldReader& field) {
  return read_global_pooling<layers::GlobalMaxPooling3D, layers::GlobalPooling3DOptions>(field);
}

}  // namespace cohort::internal
