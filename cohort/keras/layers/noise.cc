#include "cohort/keras/layers/noise.h"

#include <cmath>
#include <utility>
#include <vector>

#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/kept_elements.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/replica_generators.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

// A layer that changes its input in training by what it draws.
class NoiseLayer : public Layer {
 public:
  template <class Options>
  NoiseLayer(const char* class_name, const Options& options)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        seed_(options.seed),
        generator_(options.seed) {
    set_input_spec({.floating = true});
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    std::vector<train::TrackableChild> children = Layer::checkpoint_children();
    generator_.add_to(children);
    return children;
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions& options) override {
    if (!*options.training) return input;
    return internal::keep_mask(input, noised(input, generator_.get()));
  }
  virtual Tensor noised(const Tensor& input, const random::RandomGenerator& generator) const = 0;

  // Drawn in float32, as replicas' other numbers; of the input's dtype and device.
  static Tensor normal_like(const Tensor& input, const random::RandomGenerator& generator,
                            double mean, double stddev) {
    return generator.normal(input.sizes(), {.mean = mean, .stddev = stddev}).to(input.options());
  }

  const std::optional<uint64_t> seed_;

 private:
  const internal::LayerGenerator generator_;
};

class GaussianNoiseImpl final : public NoiseLayer {
 public:
  GaussianNoiseImpl(double stddev, const NoiseOptions& options)
      : NoiseLayer("GaussianNoise", options), stddev_(stddev) {
    if (stddev >= 0 && std::isfinite(stddev)) return;
    throw InvalidArgumentError(
        str("GaussianNoise: stddev is ", stddev, "; it must be finite, and 0 or more"));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("stddev", stddev_);
      field("seed", seed_);
    });
  }

 protected:
  Tensor noised(const Tensor& input, const random::RandomGenerator& generator) const override {
    return input + normal_like(input, generator, 0, stddev_);
  }

 private:
  const double stddev_;
};

class GaussianDropoutImpl final : public NoiseLayer {
 public:
  GaussianDropoutImpl(double rate, const NoiseOptions& options)
      : NoiseLayer("GaussianDropout", options), rate_(rate) {
    internal::check_rate(rate, "GaussianDropout", "rate");
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("rate", rate_);
      field("seed", seed_);
    });
  }

 protected:
  Tensor noised(const Tensor& input, const random::RandomGenerator& generator) const override {
    if (rate_ == 0 || rate_ == 1) return input;
    return input * normal_like(input, generator, 1, std::sqrt(rate_ / (1 - rate_)));
  }

 private:
  const double rate_;
};

class AlphaDropoutImpl final : public NoiseLayer {
 public:
  AlphaDropoutImpl(double rate, const AlphaDropoutOptions& options)
      : NoiseLayer("AlphaDropout", options), rate_(rate), noise_shape_(options.noise_shape) {
    internal::check_rate(rate, "AlphaDropout", "rate");
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("rate", rate_);
      field("seed", seed_);
      field.unless("noise_shape", noise_shape_, Shape());
    });
  }

 protected:
  Tensor noised(const Tensor& input, const random::RandomGenerator& generator) const override {
    if (rate_ == 0 || rate_ == 1) return input;
    constexpr double kDropped =
        -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
    const Shape shape = internal::noise_shape(noise_shape_, input.sizes(), name());
    const Tensor kept = internal::kept_elements(generator, shape, rate_, input.options());
    const double factor = 1 / std::sqrt((1 - rate_) * (1 + rate_ * kDropped * kDropped));
    const double offset = -factor * kDropped * rate_;
    return factor * (input * kept + kDropped * (1 - kept)) + offset;
  }

 private:
  const double rate_;
  const Shape noise_shape_;
};

}  // namespace

GaussianNoise::GaussianNoise(double stddev, NoiseOptions options)
    : LayerHandle(std::make_shared<GaussianNoiseImpl>(stddev, options)) {}

GaussianDropout::GaussianDropout(double rate, NoiseOptions options)
    : LayerHandle(std::make_shared<GaussianDropoutImpl>(rate, options)) {}

AlphaDropout::AlphaDropout(double rate, AlphaDropoutOptions options)
    : LayerHandle(std::make_shared<AlphaDropoutImpl>(rate, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Noise, class Options>
layers::LayerHandle read_noise(FieldReader& field, const char* key) {
  double number = 0;
  Options options;
  field.common(options);
  field(key, number);
  field("seed", options.seed);
  if constexpr (requires { options.noise_shape; }) {
    field.unless("noise_shape", options.noise_shape, keras::Shape());
  }
  return Noise(number, std::move(options));
}

}  // namespace

layers::LayerHandle read_alpha_dropout(FieldReader& field) {
  return read_noise<layers::AlphaDropout, layers::AlphaDropoutOptions>(field, "rate");
}
layers::LayerHandle read_gaussian_dropout(FieldReader& field) {
  return read_noise<layers::GaussianDropout, layers::NoiseOptions>(field, "rate");
}
layers::LayerHandle read_gaussian_noise(FieldReader& field) {
  return read_noise<layers::GaussianNoise, layers::NoiseOptions>(field, "stddev");
}

}  // namespace cohort::internal
