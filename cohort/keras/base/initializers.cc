#include "cohort/keras/base/initializers.h"

#include <ATen/ops/full.h>
#include <ATen/ops/linalg_qr.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/variable_spec.h"
#include "cohort/distribute/variables/known_values.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/named.h"
#include "cohort/ops/random.h"

namespace cohort::keras::initializers {

Initializer described(Initializer initializer, const Config& config) {
  initializer.config_ = std::make_shared<const Config>(config);
  return initializer;
}

namespace {

using Shape = std::vector<int64_t>;
using internal::Json;
using internal::quoted;
using internal::str;

Initializer described(Initializer initializer, const char* class_name, Json config) {
  return initializers::described(
      std::move(initializer),
      internal::serialized("keras.initializers", class_name, std::move(config)));
}

Json seed_json(const std::optional<uint64_t>& seed) { return seed ? Json(*seed) : Json(nullptr); }

// The standard deviation of a standard normal that is cut off at two.
constexpr double kTruncatedStddev = 0.87962566103423978;

struct Fans {
  double in = 1;
  double out = 1;
};

Fans compute_fans(const Shape& shape) {
  if (shape.empty()) return {};
  if (shape.size() == 1) return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  double receptive_field = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) receptive_field *= static_cast<double>(shape[i]);
  return {static_cast<double>(shape[shape.size() - 2]) * receptive_field,
          static_cast<double>(shape.back()) * receptive_field};
}

random::RandomGenerator make_generator(const std::optional<uint64_t>& seed) {
  return internal::make_stream(seed ? *seed : internal::next_seed());
}

using Draw = std::function<Tensor(const random::Generator&, const Shape&, DType)>;

// The distribution of values that a ps task can draw by itself; nullopt: it cannot.
using Distributed = std::function<std::optional<distribute::KnownValues>(const Shape&)>;

// A random initializer.
class Drawing {
 public:
  Drawing(Draw draw, Distributed distributed, const std::optional<uint64_t>& seed)
      : draw_(std::move(draw)),
        distributed_(std::move(distributed)),
        generator_(make_generator(seed)) {}

  Tensor make(const Shape& shape, DType dtype) {
    const std::lock_guard lock(mutex_);
    catch_up();
    return draw_(generator_, shape, dtype);
  }

  // What it skips, it passes over when it is asked for the next values, if ever: most make one
  // weight.
  void skip(const Shape& shape, DType dtype) {
    const std::lock_guard lock(mutex_);
    skipped_.emplace_back(shape, dtype);
  }

  std::optional<distribute::KnownValues> describe(const Shape& shape, DType dtype) {
    const std::lock_guard lock(mutex_);
    std::optional<distribute::KnownValues> known = distributed(shape, dtype);
    if (!known) return std::nullopt;
    catch_up();
    known = at_position(*known);
    skipped_.emplace_back(shape, dtype);
    return known;
  }

 private:
  std::optional<distribute::KnownValues> distributed(const Shape& shape, DType dtype) const {
    if (distributed_ == nullptr || !internal::has_known_random_values(dtype)) return std::nullopt;
    return distributed_(shape);
  }
  distribute::KnownValues at_position(distribute::KnownValues known) const {
    const random::Generator::State state = generator_.state();
    known.seed = state.seed;
    known.stream = state.stream;
    known.position = state.position;
    return known;
  }
  void catch_up() {
    for (const auto& [shape, dtype] : skipped_) {
      const auto known = distributed(shape, dtype);
      if (!known) {
        draw_(generator_, shape, dtype);
        continue;
      }
      random::Generator::State state = generator_.state();
      state.position =
          internal::position_after(at_position(*known), c10::multiply_integers(shape), dtype);
      generator_.restore(state);
    }
    skipped_.clear();
  }

  const Draw draw_;
  const Distributed distributed_;
  const random::Generator generator_;
  std::mutex mutex_;
  std::vector<std::pair<Shape, DType>> skipped_;  // guarded by mutex_
};

Initializer drawn_by(Draw draw, const std::optional<uint64_t>& seed,
                     Distributed distributed = nullptr) {
  const auto drawing = std::make_shared<Drawing>(std::move(draw), std::move(distributed), seed);
  return {[drawing](const Shape& shape, DType dtype) { return drawing->make(shape, dtype); },
          [drawing](const Shape& shape, DType dtype) { drawing->skip(shape, dtype); },
          [drawing](const Shape& shape, DType dtype) { return drawing->describe(shape, dtype); }};
}

using distribute::KnownValues;

using DrawNormal = Tensor (random::RandomGenerator::*)(at::IntArrayRef,
                                                       random::NormalOptions) const;

// The number of a fan that a mode means.
using FanOf = double (*)(const Fans& fans);
FanOf fan_of_mode(const std::string& mode) {
  if (mode == "fan_in") return [](const Fans& fans) { return fans.in; };
  if (mode == "fan_out") return [](const Fans& fans) { return fans.out; };
  if (mode == "fan_avg") return [](const Fans& fans) { return (fans.in + fans.out) / 2; };
  throw InvalidArgumentError(str("VarianceScaling: the mode is ", quoted(mode),
                                 "; it must be 'fan_in', 'fan_out' or 'fan_avg'"));
}

Initializer variance_scaling(const VarianceScalingOptions& options) {
  if (!(options.scale > 0)) {
    throw InvalidArgumentError(
        str("VarianceScaling: the scale is ", options.scale, "; it must be above 0"));
  }
  const auto variance_for = [scale = options.scale,
                             fan_of = fan_of_mode(options.mode)](const Shape& shape) {
    return scale / std::max(1.0, fan_of(compute_fans(shape)));
  };
  if (options.distribution == "uniform") {
    const auto limit_for = [variance_for](const Shape& shape) {
      return std::sqrt(3 * variance_for(shape));
    };
    return drawn_by(
        [limit_for](const random::Generator& generator, const Shape& shape, DType dtype) {
          const double limit = limit_for(shape);
          return generator.uniform(shape, {.minval = -limit, .maxval = limit, .dtype = dtype});
        },
        options.seed,
        [limit_for](const Shape& shape) -> std::optional<KnownValues> {
          const double limit = limit_for(shape);
          return KnownValues{.kind = KnownValues::Kind::kUniform, .first = -limit, .second = limit};
        });
  }
  const bool is_truncated = options.distribution == "truncated_normal";
  if (!is_truncated && options.distribution != "untruncated_normal") {
    throw InvalidArgumentError(
        str("VarianceScaling: the distribution is ", quoted(options.distribution),
            "; it must be 'truncated_normal', 'untruncated_normal' or 'uniform'"));
  }
  const auto stddev_for = [variance_for, is_truncated](const Shape& shape) {
    return std::sqrt(variance_for(shape)) / (is_truncated ? kTruncatedStddev : 1);
  };
  const DrawNormal draw =
      is_truncated ? &random::RandomGenerator::truncated_normal : &random::RandomGenerator::normal;
  return drawn_by(
      [draw, stddev_for](const random::Generator& generator, const Shape& shape, DType dtype) {
        return (generator.*draw)(shape, {.stddev = stddev_for(shape), .dtype = dtype});
      },
      options.seed,
      [is_truncated, stddev_for](const Shape& shape) -> std::optional<KnownValues> {
        return KnownValues{
            .kind = is_truncated ? KnownValues::Kind::kTruncatedNormal : KnownValues::Kind::kNormal,
            .second = stddev_for(shape)};
      });
}

Initializer normal_by(DrawNormal draw, KnownValues::Kind kind, const RandomNormalOptions& options) {
  return drawn_by(
      [draw, options](const random::RandomGenerator& generator, const Shape& shape, DType dtype) {
        return (generator.*draw)(shape,
                                 {.mean = options.mean, .stddev = options.stddev, .dtype = dtype});
      },
      options.seed,
      [kind, options](const Shape&) -> std::optional<KnownValues> {
        return KnownValues{.kind = kind, .first = options.mean, .second = options.stddev};
      });
}

// One that has a name of its own.
Initializer scaled(const char* class_name, const VarianceScalingOptions& options) {
  return described(variance_scaling(options), class_name, {{"seed", seed_json(options.seed)}});
}

struct NamedInitializer {
  std::string_view name;
  Initializer (*make)();
};
constexpr NamedInitializer kInitializers[] = {
    {"zeros", [] { return Zeros(); }},
    {"ones", [] { return Ones(); }},
    {"constant", [] { return Constant(); }},
    {"glorot_uniform", [] { return GlorotUniform(); }},
    {"glorot_normal", [] { return GlorotNormal(); }},
    {"he_uniform", [] { return HeUniform(); }},
    {"he_normal", [] { return HeNormal(); }},
    {"lecun_uniform", [] { return LecunUniform(); }},
    {"lecun_normal", [] { return LecunNormal(); }},
    {"variance_scaling", [] { return VarianceScaling(); }},
    {"random_uniform", [] { return RandomUniform(); }},
    {"uniform", [] { return RandomUniform(); }},
    {"random_normal", [] { return RandomNormal(); }},
    {"normal", [] { return RandomNormal(); }},
    {"truncated_normal", [] { return TruncatedNormal(); }},
    {"orthogonal", [] { return Orthogonal(); }},
};

}  // namespace

Initializer::Initializer(std::string_view name) {
  std::vector<std::string_view> known;
  for (const NamedInitializer& candidate : kInitializers) {
    if (candidate.name == name) {
      *this = candidate.make();
      return;
    }
    known.emplace_back(candidate.name);
  }
  internal::throw_unknown_name("initializer", name, {known, known});
}

std::optional<Config> Initializer::serialize() const {
  if (config_ == nullptr) return std::nullopt;
  return *config_;
}

distribute::VariableInitializer Initializer::for_variable(Shape shape, DType dtype) const {
  // The parts are of one whole, which is kept until the last of them was taken.
  struct Whole {
    std::mutex mutex;
    Tensor value;  // guarded by mutex, as is the number of elements that are left
    int64_t left = 0;
  };
  const auto make = [fn = fn_, shape, dtype,
                     whole = std::make_shared<Whole>()](const distribute::ShardInfo& shard) {
    const std::lock_guard lock(whole->mutex);
    if (!whole->value.defined()) {
      whole->value = fn(shape, dtype);
      whole->left = c10::multiply_integers(shape);
    }
    Tensor part = whole->value;
    if (!part.defined() || part.sizes() != shape) return std::exchange(whole->value, Tensor());
    part = shard.of(part);
    whole->left -= part.numel();
    if (whole->left <= 0) whole->value = Tensor();
    return part;
  };
  distribute::VariableInitializer::Skip skip = nullptr;
  if (skip_ != nullptr) skip = [skip = skip_, shape, dtype] { skip(shape, dtype); };
  distribute::VariableInitializer::Describe describe = nullptr;
  if (describe_ != nullptr) {
    describe = [describe = describe_, shape, dtype] { return describe(shape, dtype); };
  }
  return {make, skip, describe};
}

namespace {

Initializer full_of(double value) {
  return {[value](const Shape& shape, DType dtype) { return at::full(shape, value, dtype); },
          [](const Shape&, DType) {},
          [value](const Shape&, DType) -> std::optional<KnownValues> {
            return KnownValues{.first = value};
          }};
}

}  // namespace

Initializer Constant(double value) {
  return described(full_of(value), "Constant", {{"value", value}});
}
Initializer Zeros() { return described(full_of(0), "Zeros", Json::object()); }
Initializer Ones() { return described(full_of(1), "Ones", Json::object()); }

namespace {

Json normal_json(const RandomNormalOptions& options) {
  return {{"mean", options.mean}, {"stddev", options.stddev}, {"seed", seed_json(options.seed)}};
}

}  // namespace

Initializer RandomNormal(const RandomNormalOptions& options) {
  return described(normal_by(&random::RandomGenerator::normal, KnownValues::Kind::kNormal, options),
                   "RandomNormal", normal_json(options));
}
Initializer TruncatedNormal(const RandomNormalOptions& options) {
  return described(normal_by(&random::RandomGenerator::truncated_normal,
                             KnownValues::Kind::kTruncatedNormal, options),
                   "TruncatedNormal", normal_json(options));
}

Initializer RandomUniform(const RandomUniformOptions& options) {
  const auto draw = [options](const random::Generator& generator, const Shape& shape, DType dtype) {
    return generator.uniform(shape,
                             {.minval = options.minval, .maxval = options.maxval, .dtype = dtype});
  };
  const auto describe = [options](const Shape&) -> std::optional<KnownValues> {
    return KnownValues{
        .kind = KnownValues::Kind::kUniform, .first = options.minval, .second = options.maxval};
  };
  return described(
      drawn_by(draw, options.seed, describe), "RandomUniform",
      {{"minval", options.minval}, {"maxval", options.maxval}, {"seed", seed_json(options.seed)}});
}

Initializer VarianceScaling(const VarianceScalingOptions& options) {
  return described(variance_scaling(options), "VarianceScaling",
                   {{"scale", options.scale},
                    {"mode", options.mode},
                    {"distribution", options.distribution},
                    {"seed", seed_json(options.seed)}});
}
Initializer GlorotUniform(const SeedOptions& options) {
  return scaled("GlorotUniform",
                {.scale = 1, .mode = "fan_avg", .distribution = "uniform", .seed = options.seed});
}
Initializer GlorotNormal(const SeedOptions& options) {
  return scaled(
      "GlorotNormal",
      {.scale = 1, .mode = "fan_avg", .distribution = "truncated_normal", .seed = options.seed});
}
Initializer HeUniform(const SeedOptions& options) {
  return scaled("HeUniform",
                {.scale = 2, .mode = "fan_in", .distribution = "uniform", .seed = options.seed});
}
Initializer HeNormal(const SeedOptions& options) {
  return scaled(
      "HeNormal",
      {.scale = 2, .mode = "fan_in", .distribution = "truncated_normal", .seed = options.seed});
}
Initializer LecunUniform(const SeedOptions& options) {
  return scaled("LecunUniform",
                {.scale = 1, .mode = "fan_in", .distribution = "uniform", .seed = options.seed});
}
Initializer LecunNormal(const SeedOptions& options) {
  return scaled(
      "LecunNormal",
      {.scale = 1, .mode = "fan_in", .distribution = "truncated_normal", .seed = options.seed});
}

Initializer Orthogonal(const OrthogonalOptions& options) {
  const auto draw = [gain = options.gain](const random::Generator& generator, const Shape& shape,
                                          DType dtype) {
    if (shape.size() < 2) {
      throw InvalidArgumentError(
          internal::str("Orthogonal makes weights of two or more dimensions, "
                        "not of shape ",
                        internal::shape_str(shape)));
    }
    const int64_t columns = shape.back();
    const int64_t rows = c10::multiply_integers(at::IntArrayRef(shape).slice(0, shape.size() - 1));
    // No library factorizes matrices of 16 bits.
    const DType wide = dtype == at::kHalf || dtype == at::kBFloat16 ? float32 : dtype;
    const Tensor tall =
        generator.normal({std::max(rows, columns), std::min(rows, columns)}, {.dtype = wide});
    const auto [q, r] = at::linalg_qr(tall);
    // The signs make the distribution uniform over the orthogonal matrices.
    const Tensor orthogonal = q * r.diagonal().sign();
    return ((rows < columns ? orthogonal.t() : orthogonal) * gain)
        .to(dtype)
        .reshape(shape)
        .contiguous();
  };
  return described(drawn_by(draw, options.seed), "Orthogonal",
                   {{"gain", options.gain}, {"seed", seed_json(options.seed)}});
}

}  // namespace cohort::keras::initializers
