#include "cohort/keras/initializers.h"

#include <ATen/ops/full.h>
#include <ATen/ops/linalg_qr.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/variable_spec.h"
#include "cohort/ops/random.h"

namespace cohort::keras::initializers {
namespace {

using Shape = std::vector<int64_t>;

// The standard deviation of a standard normal that is cut off at two.
constexpr double kTruncatedStddev = 0.87962566103423978;

enum class FanMode { kIn, kAverage };
enum class Distribution { kUniform, kTruncatedNormal };

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
  return random::RandomGenerator::from_seed(seed ? *seed : internal::next_seed());
}

using Draw = std::function<Tensor(const random::Generator&, const Shape&, DType)>;

// A random initializer. What it skips, it draws when it is asked for the next values, if ever: most
// make one weight.
Initializer drawn_by(Draw draw, const std::optional<uint64_t>& seed) {
  struct State {
    const Draw draw;
    const random::Generator generator;
    std::mutex mutex;
    std::vector<std::pair<Shape, DType>> skipped;  // guarded by mutex
  };
  const std::shared_ptr<State> state(new State{std::move(draw), make_generator(seed), {}, {}});
  return {[state](const Shape& shape, DType dtype) {
            std::lock_guard lock(state->mutex);
            for (const auto& [skipped_shape, skipped_dtype] : state->skipped) {
              state->draw(state->generator, skipped_shape, skipped_dtype);
            }
            state->skipped.clear();
            return state->draw(state->generator, shape, dtype);
          },
          [state](const Shape& shape, DType dtype) {
            std::lock_guard lock(state->mutex);
            state->skipped.emplace_back(shape, dtype);
          }};
}

Initializer variance_scaling(double scale, FanMode mode, Distribution distribution,
                             const SeedOptions& options) {
  const auto draw = [scale, mode, distribution](const random::Generator& generator,
                                                const Shape& shape, DType dtype) {
    const Fans fans = compute_fans(shape);
    const double fan = mode == FanMode::kIn ? fans.in : (fans.in + fans.out) / 2;
    const double variance = scale / std::max(1.0, fan);
    if (distribution == Distribution::kUniform) {
      const double limit = std::sqrt(3 * variance);
      return generator.uniform(shape, {.minval = -limit, .maxval = limit, .dtype = dtype});
    }
    return generator.truncated_normal(
        shape, {.stddev = std::sqrt(variance) / kTruncatedStddev, .dtype = dtype});
  };
  return drawn_by(draw, options.seed);
}

using DrawNormal = Tensor (random::RandomGenerator::*)(std::vector<int64_t>,
                                                       random::NormalOptions) const;

Initializer normal_by(DrawNormal draw, const RandomNormalOptions& options) {
  return drawn_by(
      [draw, options](const random::RandomGenerator& generator, const Shape& shape, DType dtype) {
        return (generator.*draw)(shape,
                                 {.mean = options.mean, .stddev = options.stddev, .dtype = dtype});
      },
      options.seed);
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
    {"random_uniform", [] { return RandomUniform(); }},
    {"uniform", [] { return RandomUniform(); }},
    {"random_normal", [] { return RandomNormal(); }},
    {"normal", [] { return RandomNormal(); }},
    {"truncated_normal", [] { return TruncatedNormal(); }},
    {"orthogonal", [] { return Orthogonal(); }},
};

}  // namespace

Initializer::Initializer(std::string_view name) {
  std::string known;
  for (const NamedInitializer& candidate : kInitializers) {
    if (candidate.name == name) {
      *this = candidate.make();
      return;
    }
    known += internal::str(known.empty() ? "" : ", ", candidate.name);
  }
  throw InvalidArgumentError(
      internal::str("no initializer is called ", internal::quoted(name), "; there are: ", known));
}

distribute::VariableInitializer Initializer::for_variable(Shape shape, DType dtype) const {
  const auto make = [fn = fn_, shape, dtype](const distribute::ShardInfo& shard) {
    const Tensor whole = fn(shape, dtype);
    return whole.defined() && whole.sizes() == shape ? shard.of(whole) : whole;
  };
  if (skip_ == nullptr) return make;
  return {make, [skip = skip_, shape, dtype] { skip(shape, dtype); }};
}

Initializer Constant(double value) {
  return {[value](const Shape& shape, DType dtype) { return at::full(shape, value, dtype); },
          [](const Shape&, DType) {}};
}
Initializer Zeros() { return Constant(0); }
Initializer Ones() { return Constant(1); }

Initializer RandomNormal(const RandomNormalOptions& options) {
  return normal_by(&random::RandomGenerator::normal, options);
}
Initializer TruncatedNormal(const RandomNormalOptions& options) {
  return normal_by(&random::RandomGenerator::truncated_normal, options);
}

Initializer RandomUniform(const RandomUniformOptions& options) {
  const auto draw = [options](const random::Generator& generator, const Shape& shape, DType dtype) {
    return generator.uniform(shape,
                             {.minval = options.minval, .maxval = options.maxval, .dtype = dtype});
  };
  return drawn_by(draw, options.seed);
}

Initializer GlorotUniform(const SeedOptions& options) {
  return variance_scaling(1, FanMode::kAverage, Distribution::kUniform, options);
}
Initializer GlorotNormal(const SeedOptions& options) {
  return variance_scaling(1, FanMode::kAverage, Distribution::kTruncatedNormal, options);
}
Initializer HeUniform(const SeedOptions& options) {
  return variance_scaling(2, FanMode::kIn, Distribution::kUniform, options);
}
Initializer HeNormal(const SeedOptions& options) {
  return variance_scaling(2, FanMode::kIn, Distribution::kTruncatedNormal, options);
}
Initializer LecunUniform(const SeedOptions& options) {
  return variance_scaling(1, FanMode::kIn, Distribution::kUniform, options);
}
Initializer LecunNormal(const SeedOptions& options) {
  return variance_scaling(1, FanMode::kIn, Distribution::kTruncatedNormal, options);
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
    const Tensor tall =
        generator.normal({std::max(rows, columns), std::min(rows, columns)}, {.dtype = dtype});
    const auto [q, r] = at::linalg_qr(tall);
    // Without the signs the distribution would not be uniform over the orthogonal matrices.
    const Tensor orthogonal = q * r.diagonal().sign();
    return ((rows < columns ? orthogonal.t() : orthogonal) * gain).reshape(shape).contiguous();
  };
  return drawn_by(draw, options.seed);
}

}  // namespace cohort::keras::initializers
