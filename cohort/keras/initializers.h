// The values that weights start from.
//
//   layers::Dense(10, {.kernel_initializer = "he_normal"});
//   layers::Dense(10, {.kernel_initializer = initializers::GlorotUniform({.seed = 7})});
//   layers::Dense(10, {.bias_initializer = initializers::Constant(0.1)});
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/tensor.h"

namespace cohort::distribute {
class VariableInitializer;
}

namespace cohort::keras::initializers {

struct SeedOptions {
  // Missing: one derived from random::set_seed's, another for each initializer.
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

// A handle to an initializer. A random one draws from a generator of its own, seeded when it is
// made: copies continue one stream, so two weights of one initializer differ.
//
// A weight whose value was restored before the weight was made starts from that value. The
// initializers below then make nothing, and the values that they make for later weights are the
// same as without the restore. A function of the user's runs all the same, unless it comes with
// `skip`: it may draw random numbers that others draw, too.
//
// Thread safety: any thread.
class COHORT_API Initializer {
 public:
  using Function = std::function<Tensor(const std::vector<int64_t>& shape, DType dtype)>;
  using Skip = std::function<void(const std::vector<int64_t>& shape, DType dtype)>;

  // zeros, ones, constant, glorot_uniform, glorot_normal, he_uniform, he_normal, lecun_uniform,
  // lecun_normal, random_uniform (or uniform), random_normal (or normal), truncated_normal.
  // Errors: InvalidArgument (another name; lists them).
  Initializer(std::string_view name);
  Initializer(const char* name) : Initializer(std::string_view(name)) {}
  Initializer(const std::string& name) : Initializer(std::string_view(name)) {}
  template <class Fn>
  requires(std::is_invocable_r_v<Tensor, const Fn&, const std::vector<int64_t>&, DType> &&
           !std::same_as<Fn, Initializer>) Initializer(Fn fn, Skip skip = nullptr)
      : fn_(std::move(fn)), skip_(std::move(skip)) {}

  Tensor operator()(const std::vector<int64_t>& shape, DType dtype) const {
    return fn_(shape, dtype);
  }
  // What makes a variable of this shape and dtype, when it is asked to. A part of it has the values
  // that it would have in the whole.
  distribute::VariableInitializer for_variable(std::vector<int64_t> shape, DType dtype) const;

 private:
  Function fn_;
  Skip skip_;
};

COHORT_API Initializer Constant(double value = 0);
COHORT_API Initializer Zeros();
COHORT_API Initializer Ones();
COHORT_API Initializer RandomNormal(const RandomNormalOptions& options = {});
// Redrawn where further than two standard deviations from the mean.
COHORT_API Initializer TruncatedNormal(const RandomNormalOptions& options = {});
COHORT_API Initializer RandomUniform(const RandomUniformOptions& options = {});

// With fan_in and fan_out of a kernel [.., in, out] (each times the receptive field before them):
// Glorot scales by 2 / (fan_in + fan_out), He by 2 / fan_in, LeCun by 1 / fan_in. The variance of
// the values is that number; the normal ones are truncated.
COHORT_API Initializer GlorotUniform(const SeedOptions& options = {});
COHORT_API Initializer GlorotNormal(const SeedOptions& options = {});
COHORT_API Initializer HeUniform(const SeedOptions& options = {});
COHORT_API Initializer HeNormal(const SeedOptions& options = {});
COHORT_API Initializer LecunUniform(const SeedOptions& options = {});
COHORT_API Initializer LecunNormal(const SeedOptions& options = {});

}  // namespace cohort::keras::initializers
