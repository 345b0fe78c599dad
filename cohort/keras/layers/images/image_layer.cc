#include "cohort/keras/layers/images/image_layer.h"

#include <algorithm>
#include <utility>

#include "cohort/core/libtorch_error.h"
#include "cohort/image/crop.h"
#include "cohort/image/resize.h"
#include "cohort/keras/layers/base/layer_state.h"

namespace cohort::keras::layers {

internal::Json field_json(const Factor& value) {
  if (!value.is_range()) return value.lower();
  return internal::Json::array({value.lower(), value.upper()});
}

void read_field(const internal::Json& json, Factor& value, const std::string& where) {
  if (json.is_number()) {
    value = Factor(json.get<double>());
    return;
  }
  std::vector<double> bounds;
  if (json.is_array()) internal::read_field(json, bounds, where);
  if (bounds.size() != 2) internal::throw_wrong_field(json, "a number or a list of two", where);
  value = Factor(bounds[0], bounds[1]);
}

}  // namespace cohort::keras::layers

namespace cohort::internal {
namespace {

thread_local const random::RandomGenerator* element_generator = nullptr;

// Numbers of [0, 1) in the range, in float32: a range of one value gives that value.
Tensor scaled_to(const FactorRange& range, const Tensor& uniform) {
  const auto lower = static_cast<float>(range.lower);
  return uniform * (static_cast<float>(range.upper) - lower) + lower;
}

}  // namespace

FactorRange symmetric_range(const keras::layers::Factor& factor) {
  if (factor.is_range()) return {factor.lower(), factor.upper()};
  return {-factor.upper(), factor.upper()};
}

ElementDraws::ElementDraws(const random::RandomGenerator& generator)
    : outer_(std::exchange(element_generator, &generator)) {}

ElementDraws::~ElementDraws() { element_generator = outer_; }

void ImageLayer::check_images(const Tensor& images) const {
  if (images.dim() == 3 || images.dim() == 4) return;
  throw InvalidArgumentError(
      str(where(), " takes an image [height, width, channels] or a batch of ",
          "images [batch, height, width, channels], but got ", describe(images)));
}

Tensor smart_resize(const Tensor& images, int64_t height, int64_t width,
                    const std::string& method) {
  const int64_t from_height = images.size(-3);
  const int64_t from_width = images.size(-2);
  // In float32, as Keras computes them.
  const auto part = [](int64_t a, int64_t b, int64_t c) {
    return static_cast<int64_t>(static_cast<float>(a * b) / static_cast<float>(c));
  };
  const int64_t crop_height = std::min(from_height, part(from_width, height, width));
  const int64_t crop_width = std::min(from_width, part(from_height, width, height));
  const Tensor middle =
      cohort::image::crop_to_bounding_box(images, (from_height - crop_height) / 2,
                                          (from_width - crop_width) / 2, crop_height, crop_width);
  return cohort::image::resize(middle, {height, width}, {.method = method});
}

void check_output_size(const std::string& where, int64_t height, int64_t width) {
  if (height > 0 && width > 0) return;
  throw InvalidArgumentError(
      str(where, ": height is ", height, " and width ", width, "; both must be above 0"));
}

RandomImageLayer::RandomImageLayer(const char* class_name,
                                   const keras::layers::LayerOptions& options,
                                   const std::optional<uint64_t>& seed)
    : ImageLayer(class_name, options), seed_(seed), generator_(seed) {
  LayerState::of(*this).trains_by_default = true;
}

std::vector<train::TrackableChild> RandomImageLayer::checkpoint_children() {
  std::vector<train::TrackableChild> children = Layer::checkpoint_children();
  generator_.add_to(children);
  return children;
}

Tensor RandomImageLayer::call(const Tensor& input, const keras::CallOptions& options) {
  check_images(input);
  const Tensor images = in_compute_dtype(input);
  return *options.training ? changed(images) : unchanged(images);
}

random::RandomGenerator RandomImageLayer::generator() const {
  return element_generator != nullptr ? *element_generator : generator_.get();
}

Tensor RandomImageLayer::draw_each(const Tensor& images, const FactorRange& range) const {
  const int64_t count = images.dim() == 4 ? images.size(0) : 1;
  return scaled_to(range, generator().uniform({count}).to(images.device()));
}

Tensor RandomImageLayer::draw_one(const Tensor& images, const FactorRange& range) const {
  return scaled_to(range, generator().uniform({}).to(images.device()));
}

int64_t RandomImageLayer::draw_below(int64_t count) const {
  return static_cast<int64_t>(generator().next_u64() % static_cast<uint64_t>(count));
}

}  // namespace cohort::internal
