#include "cohort/keras/layers/convolution/up_sampling.h"

#include <ATen/ops/upsample_bilinear2d.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cohort/core/text.h"
#include "cohort/keras/base/policy.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/convolution/windows.h"

namespace cohort::keras::layers {
namespace {

using internal::Sizes;
using internal::str;

// Whether it is bilinear. Errors: InvalidArgument, Unimplemented.
bool is_bilinear(const std::string& interpolation) {
  const std::string word = internal::lower(interpolation);
  if (word == "nearest" || word == "bilinear") return word == "bilinear";
  constexpr std::array<std::string_view, 6> kOthers = {"area",     "bicubic",  "gaussian",
                                                       "lanczos3", "lanczos5", "mitchellcubic"};
  const bool is_known = std::find(kOthers.begin(), kOthers.end(), word) != kOthers.end();
  const std::string text = str("UpSampling2D: interpolation is ", internal::quoted(interpolation),
                               "; it must be 'nearest' or 'bilinear'");
  if (is_known) throw UnimplementedError(text);
  throw InvalidArgumentError(text);
}

// Size: int64_t, Size2D or Size3D.
template <class Size, class Options>
class UpSamplingImpl final : public Layer {
 public:
  UpSamplingImpl(const char* class_name, Size size, const Options& options)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        size_(size),
        factors_(internal::sizes_of(size)),
        options_(options) {
    const auto [least, most] = std::minmax_element(factors_.begin(), factors_.end());
    if (*least < 1 || *most > internal::kMostOfAxis) {
      throw InvalidArgumentError(str(class_name, ": size is ", *least, " to ", *most,
                                     "; it must be at least 1, and at most ",
                                     internal::kMostOfAxis));
    }
    if constexpr (requires { options.data_format; }) {
      channels_first_ = internal::is_channels_first(options.data_format, class_name);
    }
    if constexpr (requires { options.interpolation; }) {
      bilinear_ = is_bilinear(options.interpolation);
    }
    set_input_spec({.rank = static_cast<int64_t>(factors_.size()) + 2, .floating = bilinear_});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("size", size_);
      if constexpr (requires { options_.data_format; }) field("data_format", options_.data_format);
      if constexpr (requires { options_.interpolation; }) {
        field("interpolation", options_.interpolation);
      }
    });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    return bilinear_ ? interpolated(input) : repeated(input);
  }

 private:
  Tensor repeated(const Tensor& input) const {
    const int64_t first = channels_first_ ? 2 : 1;
    Tensor wide = input;
    Shape copies, sizes;
    for (int64_t axis = 0; axis < input.dim(); ++axis) {
      copies.push_back(input.size(axis));
      sizes.push_back(input.size(axis));
      const auto place = static_cast<size_t>(axis - first);
      if (axis < first || place >= factors_.size()) continue;
      wide = wide.unsqueeze(static_cast<int64_t>(copies.size()));
      copies.push_back(factors_[place]);
      sizes.back() *= factors_[place];
    }
    return wide.expand(copies).reshape(sizes);
  }

  Tensor interpolated(const Tensor& input) const {
    const Tensor wide = input.is_cpu() ? internal::widened(input) : input;
    const Tensor images = internal::to_channels_first(wide, channels_first_);
    const Tensor larger = at::upsample_bilinear2d(
        images, {images.size(2) * factors_[0], images.size(3) * factors_[1]},
        /*align_corners=*/false);
    return internal::from_channels_first(larger, channels_first_).to(input.scalar_type());
  }

  const Size size_;
  const Sizes factors_;
  const Options options_;
  bool channels_first_ = false;
  bool bilinear_ = false;
};

}  // namespace

UpSampling1D::UpSampling1D(int64_t size, UpSampling1DOptions options)
    : LayerHandle(std::make_shared<UpSamplingImpl<int64_t, UpSampling1DOptions>>("UpSampling1D",
                                                                                 size, options)) {}
UpSampling2D::UpSampling2D(Size2D size, UpSampling2DOptions options)
    : LayerHandle(std::make_shared<UpSamplingImpl<Size2D, UpSampling2DOptions>>("UpSampling2D",
                                                                                size, options)) {}
UpSampling3D::UpSampling3D(Size3D size, UpSampling3DOptions options)
    : LayerHandle(std::make_shared<UpSamplingImpl<Size3D, UpSampling3DOptions>>("UpSampling3D",
                                                                                size, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class UpSampling, class Size, class Options>
layers::LayerHandle read_up_sampling(FieldReader& field) {
  Size size = 2;
  Options options;
  field.common(options);
  field("size", size);
  if constexpr (requires { options.data_format; }) field("data_format", options.data_format);
  if constexpr (requires { options.interpolation; }) field("interpolation", options.interpolation);
  return UpSampling(size, options);
}

}  // namespace

layers::LayerHandle read_up_sampling1d(FieldReader& field) {
  return read_up_sampling<layers::UpSampling1D, int64_t, layers::UpSampling1DOptions>(field);
}
layers::LayerHandle read_up_sampling2d(FieldReader& field) {
  return read_up_sampling<layers::UpSampling2D, layers::Size2D, layers::UpSampling2DOptions>(field);
}
layers::LayerHandle read_up_sampling3d(FieldReader& field) {
  return read_up_sampling<layers::UpSampling3D, layers::Size3D, layers::UpSampling3DOptions>(field);
}

}  // namespace cohort::internal
