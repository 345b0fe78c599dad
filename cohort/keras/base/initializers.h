// The initial values of weights.
//
//   layers::Dense(10, {.kernel_initializer = "he_normal"});
//   layers::Dense(10, {.kernel_initializer = initializers::GlorotUniform({.seed = 7})});
//   layers::Dense(10, {.bias_initializer = initializers::Constant(0.1)});
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/variable_spec.h"
#include "cohort/keras/base/config.h"

namespace cohort::keras::initializers {

struct SeedOptions {
  // Missing: derived from the seed of random::set_seed, different for each initializer.
  std::optional<uint64_t> seed = std::nullopt;
};
struct RandomNormalOptions {
  double mean = 0;
  double stddev = 0.05;
  std::optional<uint64_t> seed = std::nullopt;
};
struct RandomUniformOptions {
  double minval = -0.05;
  double maxval = 0.05;
  std::optional<uint64_t> seed = std::nullopt;
};

// A handle to an initializer. A random initializer draws from its own generator, which is seeded at
// construction. Copies continue the same stream, so two weights with the same initializer differ.
//
// If a weight's value was restored before the weight was created, the weight starts from that
// value. The initializers below then compute nothing, and the values that they make for later
// weights are the same as without the restore. A function of the user runs nevertheless, unless it
// comes with `skip`: it may draw random numbers from a stream that others use, too.
//
// Thread safety: any thread.
class COHORT_API Initializer {
 public:
  using Function = std::function<Tensor(const std::vector<int64_t>& shape, DType dtype)>;
  using Skip = std::function<void(const std::vector<int64_t>& shape, DType dtype)>;
  using Describe = std::function<std::optional<distribute::KnownValues>(
      const std::vector<int64_t>& shape, DType dtype)>;

  // zeros, ones, constant, glorot_uniform, glorot_normal, he_uniform, he_normal, lecun_uniform,
  // lecun_normal, variance_scaling, random_uniform (or uniform), random_normal (or normal),
  // truncated_normal, orthogonal.
  // Errors: InvalidArgument (another name; lists them).
  Initializer(std::string_view name);
  Initializer(const char* name) : Initializer(std::string_view(name)) {}
  Initializer(const std::string& name) : Initializer(std::string_view(name)) {}
  template <class Fn>
  requires(std::is_invocable_r_v<Tensor, const Fn&, const std::vector<int64_t>&, DType> &&
           !std::same_as<Fn, Initializer>)
      Initializer(Fn fn, Skip skip = nullptr, Describe describe = nullptr)
      : fn_(std::move(fn)), skip_(std::move(skip)), describe_(std::move(describe)) {}

  Tensor operator()(const std::vector<int64_t>& shape, DType dtype) const {
    return fn_(shape, dtype);
  }
  // Keras's form: {"class_name": "GlorotUniform", "config": {"seed": null}, ..}; nullopt for a
  // function of the program.
  std::optional<Config> serialize() const;
  // The function that makes a variable of this shape and dtype later. A part of the variable gets
  // the values that it would have in the whole.
  distribute::VariableInitializer for_variable(std::vector<int64_t> shape, DType dtype) const;

 private:
  friend Initializer described(Initializer initializer, const Config& config);

  Function fn_;
  Skip skip_;
  Describe describe_;                     // see VariableInitializer
  std::shared_ptr<const Config> config_;  // nullptr: a function of the program
};

COHORT_API Initializer Constant(double value = 0);
COHORT_API Initializer Zeros();
COHORT_API Initializer Ones();
COHORT_API Initializer RandomNormal(const RandomNormalOptions& options = {});
// Values further than two standard deviations from the mean are drawn again.
COHORT_API Initializer TruncatedNormal(const RandomNormalOptions& options = {});
COHORT_API Initializer RandomUniform(const RandomUniformOptions& options = {});

// A kernel [.., in, out] has a fan_in and a fan_out (each times the receptive field before them).
// Glorot scales by 2 / (fan_in + fan_out), He by 2 / fan_in, LeCun by 1 / fan_in. The variance of
// the values is that number; the normal ones are truncated. They are cases of VarianceScaling's
// rule, scale / fan.
struct VarianceScalingOptions {
  double scale = 1;                               // above 0
  std::string mode = "fan_in";                    // or "fan_out", "fan_avg"
  std::string distribution = "truncated_normal";  // or "untruncated_normal", "uniform"
  std::optional<uint64_t> seed = std::nullopt;
};
// Errors: InvalidArgument (no such options).
COHORT_API Initializer VarianceScaling(const VarianceScalingOptions& options = {});
COHORT_API Initializer GlorotUniform(const SeedOptions& options = {});
COHORT_API Initializer GlorotNormal(const SeedOptions& options = {});
COHORT_API Initializer HeUniform(const SeedOptions& options = {});
COHORT_API Initializer HeNormal(const SeedOptions& options = {});
COHORT_API Initializer LecunUniform(const SeedOptions& options = {});
COHORT_API Initializer LecunNormal(const SeedOptions& options = {});

struct OrthogonalOptions {
  double gain = 1;
  std::optional<uint64_t> seed = std::nullopt;
};
// gain times a random matrix [all dimensions but the last, the last] whose columns, or rows if they
// are fewer, are orthogonal and of length 1. Errors (of the initializer): InvalidArgument (a shape
// of fewer than two dimensions).
COHORT_API Initializer Orthogonal(const OrthogonalOptions& options = {});

}  // namespace cohort::keras::initializers
