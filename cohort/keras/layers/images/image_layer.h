// What layers on images share: the images' form, and the numbers that random ones draw. For sources
// of layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/keras/layers/base/layer.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/replica_generators.h"
#include "cohort/keras/layers/images/factor.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {

// A factor in a configuration: a number or a list of two.
internal::Json field_json(const Factor& value);
void read_field(const internal::Json& json, Factor& value, const std::string& where);

}  // namespace cohort::keras::layers

namespace cohort::internal {

// The numbers from `lower` to `upper`.
struct FactorRange {
  double lower = 0;
  double upper = 0;
};
// A single number stands for the range from its negative to it.
FactorRange symmetric_range(const keras::layers::Factor& factor);

// During its lifetime, the calling thread's random image layers draw from `generator`, also those
// with a seed: for functions on the elements of a dataset, each of which has a generator.
class ElementDraws {
 public:
  explicit ElementDraws(const random::RandomGenerator& generator);
  ~ElementDraws();
  ElementDraws(const ElementDraws&) = delete;
  ElementDraws& operator=(const ElementDraws&) = delete;

 private:
  const random::RandomGenerator* outer_;
};

// A layer of images [height, width, channels] or batches of them [batch, height, width, channels].
class ImageLayer : public keras::layers::Layer {
 public:
  using Layer::Layer;

 protected:
  std::string where() const { return str(class_name(), " '", name(), "'"); }
  // Errors: InvalidArgument (neither an image nor a batch).
  void check_images(const Tensor& images) const;
};

// The largest middle part of the images that has the form of height x width, in that size.
Tensor smart_resize(const Tensor& images, int64_t height, int64_t width,
                    const std::string& method = "bilinear");
// Sizes of outputs. Errors: InvalidArgument (one below 1).
void check_output_size(const std::string& where, int64_t height, int64_t width);

// A layer that changes images in training, and in calls outside of every model that do not say.
class RandomImageLayer : public ImageLayer {
 public:
  RandomImageLayer(const char* class_name, const keras::layers::LayerOptions& options,
                   const std::optional<uint64_t>& seed);

  std::vector<train::TrackableChild> checkpoint_children() override;

 protected:
  Tensor call(const Tensor& input, const keras::CallOptions& options) override;
  // What the layer makes of images in the compute dtype in training.
  virtual Tensor changed(const Tensor& images) = 0;
  // What it makes of them outside of training.
  virtual Tensor unchanged(const Tensor& images) { return images; }

  const std::optional<uint64_t>& seed() const { return seed_; }
  random::RandomGenerator generator() const;
  // A number of the range for each image: [batch], or [1] of a single one; or one for all. float32.
  Tensor draw_each(const Tensor& images, const FactorRange& range) const;
  Tensor draw_one(const Tensor& images, const FactorRange& range) const;
  // A number below `count`, on the host.
  int64_t draw_below(int64_t count) const;

 private:
  std::optional<uint64_t> seed_;
  LayerGenerator generator_;
};

}  // namespace cohort::internal
