#include "cohort/keras/layers/convolution/margin_layers.h"

#include <ATen/ops/constant_pad_nd.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/convolution/windows.h"

namespace cohort::keras::layers {
namespace {

using internal::Json;
using internal::str;

std::vector<Margin> margins_of(const Margin& margin) { return {margin}; }
std::vector<Margin> margins_of(const Margins2D& all) { return {all.height, all.width}; }
std::vector<Margin> margins_of(const Margins3D& all) { return {all.depth, all.height, all.width}; }

Json margins_json(const std::vector<Margin>& margins) {
  Json list = Json::array();
  for (const Margin& one : margins) list.push_back(Json::array({one.before, one.after}));
  return margins.size() == 1 ? list[0] : list;
}

class MarginLayer : public Layer {
 public:
  // field: the option's name.
  template <class Options>
  MarginLayer(const char* class_name, const char* field, std::vector<Margin> margins,
              const Options& options)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        field_(field),
        margins_(std::move(margins)) {
    if constexpr (requires { options.data_format; }) {
      has_format_ = true;
      channels_first_ = internal::is_channels_first(options.data_format, class_name);
    }
    for (const Margin& one : margins_) {
      const auto [least, most] = std::minmax(one.before, one.after);
      if (least >= 0 && most <= internal::kMostOfAxis) continue;
      throw InvalidArgumentError(str(class_name, ": ", field, " is (", one.before, ", ", one.after,
                                     ") for an axis; both numbers must be 0 or more, and at most ",
                                     internal::kMostOfAxis));
    }
    set_input_spec({.rank = static_cast<int64_t>(margins_.size()) + 2});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field.always(field_, margins_json(margins_));
      if (!has_format_) return;
      field("data_format", std::string(channels_first_ ? "channels_first" : "channels_last"));
    });
  }

 protected:
  const std::vector<Margin>& margins() const { return margins_; }
  // The axis of the i-th margin.
  int64_t axis(size_t i) const { return static_cast<int64_t>(i) + (channels_first_ ? 2 : 1); }

 private:
  const char* const field_;
  const std::vector<Margin> margins_;
  bool has_format_ = false;
  bool channels_first_ = false;
};

class ZeroPaddingImpl final : public MarginLayer {
 public:
  using MarginLayer::MarginLayer;

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    // The last axis first.
    c10::SmallVector<int64_t, 10> sides(static_cast<size_t>(2 * input.dim()), 0);
    for (size_t i = 0; i < margins().size(); ++i) {
      const auto place = static_cast<size_t>(2 * (input.dim() - 1 - axis(i)));
      sides[place] = margins()[i].before;
      sides[place + 1] = margins()[i].after;
    }
    return at::constant_pad_nd(input, sides, 0);
  }
};

class CroppingImpl final : public MarginLayer {
 public:
  using MarginLayer::MarginLayer;

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    Tensor output = input;
    for (size_t i = 0; i < margins().size(); ++i) {
      const Margin& cut = margins()[i];
      const int64_t size = input.size(axis(i));
      if (cut.before >= size || cut.after >= size - cut.before) {
        throw InvalidArgumentError(str("layer '", name(), "' cuts ", cut.before, " and ", cut.after,
                                       " off axis ", axis(i), " of an input of shape ",
                                       internal::shape_str(input.sizes()),
                                       ", of which nothing is left"));
      }
      output = output.slice(axis(i), cut.before, size - cut.after);
    }
    return output.contiguous();
  }
};

}  // namespace

ZeroPadding1D::ZeroPadding1D(Margin padding, Margin1DOptions options)
    : LayerHandle(std::make_shared<ZeroPaddingImpl>("ZeroPadding1D", "padding", margins_of(padding),
                                                    options)) {}
ZeroPadding2D::ZeroPadding2D(Margins2D padding, MarginOptions options)
    : LayerHandle(std::make_shared<ZeroPaddingImpl>("ZeroPadding2D", "padding", margins_of(padding),
                                                    options)) {}
ZeroPadding3D::ZeroPadding3D(Margins3D padding, MarginOptions options)
    : LayerHandle(std::make_shared<ZeroPaddingImpl>("ZeroPadding3D", "padding", margins_of(padding),
                                                    options)) {}

Cropping1D::Cropping1D(Margin cropping, Margin1DOptions options)
    : LayerHandle(std::make_shared<CroppingImpl>("Cropping1D", "cropping", margins_of(cropping),
                                                 options)) {}
Cropping2D::Cropping2D(Margins2D cropping, MarginOptions options)
    : LayerHandle(std::make_shared<CroppingImpl>("Cropping2D", "cropping", margins_of(cropping),
                                                 options)) {}
Cropping3D::Cropping3D(Margins3D cropping, MarginOptions options)
    : LayerHandle(std::make_shared<CroppingImpl>("Cropping3D", "cropping", margins_of(cropping),
                                                 options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

// A number, or one or two of them.
layers::Margin read_margin(const Json& json, const std::string& where) {
  if (!json.is_array()) return integer_of(json, where);
  std::vector<int64_t> sizes;
  read_field(json, sizes, where);
  if (sizes.empty() || sizes.size() > 2) throw_wrong_field(json, "one number or two", where);
  return {sizes.front(), sizes.back()};
}

// One margin for all axes, or one for each.
std::vector<layers::Margin> read_margins(const Json& json, size_t count, const std::string& where) {
  if (count == 1 || !json.is_array()) {
    return std::vector<layers::Margin>(count, read_margin(json, where));
  }
  if (json.size() != count) throw_wrong_field(json, "a number, or one for each axis", where);
  std::vector<layers::Margin> margins;
  for (const Json& one : json) margins.push_back(read_margin(one, where));
  return margins;
}

template <class MarginsLayer, class Options>
layers::LayerHandle read_margin_layer(FieldReader& field, const char* key, size_t axes,
                                      int64_t usual) {
  Options options;
  field.common(options);
  std::vector<layers::Margin> m(axes, layers::Margin(usual));
  if (const Json* found = field.find(key)) m = read_margins(*found, axes, quoted(key));
  if constexpr (requires { options.data_format; }) field("data_format", options.data_format);
  if constexpr (std::is_constructible_v<MarginsLayer, layers::Margins3D, Options>) {
    return MarginsLayer({m[0], m[1], m[2]}, options);
  } else if constexpr (std::is_constructible_v<MarginsLayer, layers::Margins2D, Options>) {
    return MarginsLayer({m[0], m[1]}, options);
  } else {
    return MarginsLayer(m[0], options);
  }
}

}  // namespace

layers::LayerHandle read_zero_padding1d(FieldReader& field) {
  return read_margin_layer<layers::ZeroPadding1D, layers::Margin1DOptions>(field, "padding", 1, 1);
}
layers::LayerHandle read_zero_padding2d(FieldReader& field) {
  return read_margin_layer<layers::ZeroPadding2D, layers::MarginOptions>(field, "padding", 2, 1);
}
layers::LayerHandle read_zero_padding3d(FieldReader& field) {
  return read_margin_layer<layers::ZeroPadding3D, layers::MarginOptions>(field, "padding", 3, 1);
}
layers::LayerHandle read_cropping1d(FieldReader& field) {
  return read_margin_layer<layers::Cropping1D, layers::Margin1DOptions>(field, "cropping", 1, 1);
}
layers::LayerHandle read_cropping2d(FieldReader& field) {
  return read_margin_layer<layers::Cropping2D, layers::MarginOptions>(field, "cropping", 2, 0);
}
layers::LayerHandle read_cropping3d(FieldReader& field) {
  return read_margin_layer<layers::Cropping3D, layers::MarginOptions>(field, "cropping", 3, 1);
}

}  // namespace cohort::internal
