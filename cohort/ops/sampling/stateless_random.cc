#include "cohort/ops/sampling/stateless_random.h"

#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>

#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/random.h"
#include "cohort/ops/random_checks.h"
#include "cohort/ops/random_fill.h"
#include "cohort/ops/sampling/distributions.h"
#include "cohort/ops/sampling/stateless_fill.h"

namespace cohort::internal {

// Half of the block that the seed counts is the key, the other half where counting begins.
Philox philox_of(const random::StatelessSeed& seed) {
  constexpr uint64_t kScrambleKey = uint64_t{0x02461e29} << 32 | 0x3ec8f720;
  const auto words = Philox::block(kScrambleKey, static_cast<uint64_t>(seed.second()),
                                   static_cast<uint64_t>(seed.first()));
  return Philox(words[0] | uint64_t{words[1]} << 32, words[2] | uint64_t{words[3]} << 32);
}

}  // namespace cohort::internal

namespace cohort::random {
namespace {

using internal::describe;
using internal::drawn_on_host;
using internal::Operand;
using internal::Philox;
using internal::philox_of;
using internal::str;

bool is_index_dtype(DType dtype) { return dtype == int32 || dtype == int64; }

// ---- categorical --------------------------------------------------------------------------------

void check_categorical(const char* what, const Tensor& logits, int64_t num_samples, DType dtype) {
  if (!logits.defined() || !logits.is_floating_point() || logits.dim() != 2 ||
      logits.size(1) == 0) {
    throw InvalidArgumentError(str("random::", what,
                                   " takes floating logits [batch, classes] of a ",
                                   "class or more, but got ", describe(logits)));
  }
  if (!is_index_dtype(dtype)) {
    throw InvalidArgumentError(str("random::", what,
                                   " makes int32 or int64 tensors, but got dtype ",
                                   internal::dtype_name(dtype)));
  }
  if (num_samples < 0) {
    throw InvalidArgumentError(
        str("random::", what, " was asked for ", num_samples, " samples; ask for 0 or more"));
  }
}

// The class in whose part of the sum of probabilities each of `uniform` falls.
Tensor classes_at(const Tensor& logits, const Tensor& uniform, DType dtype) {
  return internal::libtorch_call("random::categorical", [&] {
    const Tensor wide = logits.detach().to(float64);
    const Tensor known = wide.isfinite();
    constexpr double kLowest = std::numeric_limits<double>::lowest();
    const Tensor greatest = at::where(known, wide, kLowest).amax(1, /*keepdim=*/true);
    const Tensor sums = at::where(known, (wide - greatest).exp(), 0).cumsum(1);
    const Tensor places = uniform.to(wide.device()) * sums.narrow(1, sums.size(1) - 1, 1);
    return at::searchsorted(sums, places, /*out_int32=*/false, /*right=*/true).to(dtype);
  });
}

// ---- distributions with parameters --------------------------------------------------------------

struct Parameter {
  const char* name;
  double least;
  bool above = false;  // must be more than `least`
  double most = std::numeric_limits<double>::max();
};

// The parameter as doubles on the host, one for each element of `shape`.
Tensor parameter_of(const char* what, const Parameter& range, const Operand& operand,
                    at::IntArrayRef shape) {
  const Tensor given = operand.tensor();
  const Tensor values = given.detach().to(at::kCPU, float64);
  const Tensor fit = (range.above ? values.gt(range.least) : values.ge(range.least))
                         .logical_and_(values.le(range.most));
  if (!fit.all().item<bool>()) {
    const double first = values.masked_select(fit.logical_not()).select(0, 0).item<double>();
    throw InvalidArgumentError(str("random::", what, ": ", range.name, " must be finite and ",
                                   range.above ? "above " : "from ", range.least,
                                   range.most == 1 ? " to 1"
                                   : range.above   ? ""
                                                   : " on",
                                   ", but one is ", first));
  }
  return internal::libtorch_call("random", [&] { return values.expand(shape).contiguous(); });
}

template <class T>
T held(double value) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto kMost = static_cast<double>(std::numeric_limits<T>::max());
    return value >= kMost ? std::numeric_limits<T>::max() : static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

// Element i is draw(stream, i), whose stream begins where no other element's draws come.
template <class Draw>
Tensor drawn_one_by_one(at::IntArrayRef shape, const StatelessSeed& seed, DType dtype, Draw draw) {
  constexpr uint64_t kWordsOfElement = 1024;
  return drawn_on_host(shape, dtype, [seed, draw](const Tensor& host) {
    const auto fill = [&]<class T>(T* out) {
      Philox random = philox_of(seed);
      for (int64_t i = 0; i < host.numel(); ++i) {
        random.seek(static_cast<uint64_t>(i) * kWordsOfElement);
        out[i] = held<T>(draw(random, i));
      }
    };
    switch (host.scalar_type()) {
      case DType::Int:
        return fill(host.data_ptr<int32_t>());
      case DType::Long:
        return fill(host.data_ptr<int64_t>());
      case DType::Float:
        return fill(host.data_ptr<float>());
      case DType::Double:
        return fill(host.data_ptr<double>());
      case DType::Half:
        return fill(host.data_ptr<at::Half>());
      default:
        return fill(host.data_ptr<at::BFloat16>());
    }
  });
}

void check_counted(const char* what, at::IntArrayRef shape, DType dtype, bool integers) {
  internal::check_random_shape(what, shape);
  if (internal::is_random_float(dtype) || (integers && is_index_dtype(dtype))) return;
  throw InvalidArgumentError(str("random::", what, " makes floating",
                                 integers ? ", int32 or int64" : "", " tensors, but got dtype ",
                                 internal::dtype_name(dtype)));
}

}  // namespace

StatelessSeed::StatelessSeed(const Tensor& seed) {
  if (!seed.defined() || seed.dim() != 1 || seed.size(0) != 2 ||
      !is_index_dtype(seed.scalar_type())) {
    throw InvalidArgumentError(str("a seed of random::stateless_* is two numbers, [2] of int32 or ",
                                   "int64, but got ", describe(seed)));
  }
  const Tensor host = seed.detach().to(at::kCPU, int64).contiguous();
  first_ = host.data_ptr<int64_t>()[0];
  second_ = host.data_ptr<int64_t>()[1];
}

Tensor split(const StatelessSeed& seed, int64_t num) {
  return stateless_uniform_full_int({num, 2}, seed, int64);
}

StatelessSeed fold_in(const StatelessSeed& seed, int64_t data) {
  return {static_cast<int64_t>(philox_of(seed).next_u64()), data};
}

Tensor stateless_uniform(at::IntArrayRef shape, const StatelessSeed& seed,
                         const UniformOptions& options) {
  internal::check_uniform("stateless_uniform", shape, options);
  return drawn_on_host(shape, options.dtype, [seed, options](const Tensor& host) {
    internal::fill_stateless_uniform(philox_of(seed), host, options);
  });
}

Tensor stateless_uniform_full_int(at::IntArrayRef shape, const StatelessSeed& seed, DType dtype) {
  internal::check_uniform_full_int("stateless_uniform_full_int", shape, dtype);
  return drawn_on_host(shape, dtype, [seed](const Tensor& host) {
    internal::fill_stateless_full_int(philox_of(seed), host);
  });
}

Tensor stateless_normal(at::IntArrayRef shape, const StatelessSeed& seed,
                        const NormalOptions& options) {
  internal::check_normal("stateless_normal", shape, options);
  return drawn_on_host(shape, options.dtype, [seed, options](const Tensor& host) {
    internal::fill_stateless_normal(philox_of(seed), host, options);
  });
}

Tensor stateless_truncated_normal(at::IntArrayRef shape, const StatelessSeed& seed,
                                  const NormalOptions& options) {
  internal::check_normal("stateless_truncated_normal", shape, options);
  return drawn_on_host(shape, options.dtype, [seed, options](const Tensor& host) {
    internal::fill_stateless_truncated_normal(philox_of(seed), host, options);
  });
}

Tensor stateless_categorical(const Tensor& logits, int64_t num_samples, const StatelessSeed& seed,
                             DType dtype) {
  check_categorical("stateless_categorical", logits, num_samples, dtype);
  const Tensor uniform = stateless_uniform({logits.size(0), num_samples}, seed, {.dtype = float64});
  return classes_at(logits, uniform, dtype);
}

Tensor categorical(const Tensor& logits, int64_t num_samples, DType dtype) {
  check_categorical("categorical", logits, num_samples, dtype);
  return classes_at(logits, uniform({logits.size(0), num_samples}, {.dtype = float64}), dtype);
}

Tensor stateless_shuffle(const Tensor& value, const StatelessSeed& seed) {
  constexpr int64_t kMostRows = int64_t{1} << 32;
  if (!value.defined() || value.dim() == 0 || value.size(0) >= kMostRows) {
    throw InvalidArgumentError(
        str("random::stateless_shuffle takes rows, fewer than 2^32 of them, ", "but got ",
            describe(value)));
  }
  const Tensor places = drawn_on_host({value.size(0)}, int64, [seed](const Tensor& host) {
    Philox random = philox_of(seed);
    const std::span rows(host.data_ptr<int64_t>(), static_cast<size_t>(host.numel()));
    std::iota(rows.begin(), rows.end(), 0);
    for (size_t i = 0; i + 1 < rows.size(); ++i) {
      std::swap(rows[i], rows[i + random.next_u32() % static_cast<uint32_t>(rows.size() - i)]);
    }
  });
  return value.index_select(0, places.to(value.device()));
}

Tensor stateless_gamma(at::IntArrayRef shape, const StatelessSeed& seed, const Operand& alpha,
                       const Operand& beta, GammaOptions options) {
  constexpr const char* kWhat = "stateless_gamma";
  check_counted(kWhat, shape, options.dtype, /*integers=*/false);
  const Tensor alphas = parameter_of(kWhat, {"alpha", 0, true}, alpha, shape);
  const Tensor betas = parameter_of(kWhat, {"beta", 0, true}, beta, shape);
  return drawn_one_by_one(shape, seed, options.dtype, [alphas, betas](Philox& random, int64_t i) {
    return internal::draw_gamma(random, alphas.data_ptr<double>()[i]) / betas.data_ptr<double>()[i];
  });
}

Tensor stateless_poisson(at::IntArrayRef shape, const StatelessSeed& seed, const Operand& lam,
                         DType dtype) {
  constexpr const char* kWhat = "stateless_poisson";
  check_counted(kWhat, shape, dtype, /*integers=*/true);
  const Tensor means = parameter_of(kWhat, {"lam", 0}, lam, shape);
  return drawn_one_by_one(shape, seed, dtype, [means](Philox& random, int64_t i) {
    return internal::draw_poisson(random, means.data_ptr<double>()[i]);
  });
}

Tensor stateless_binomial(at::IntArrayRef shape, const StatelessSeed& seed, const Operand& counts,
                          const Operand& probs, DType dtype) {
  constexpr const char* kWhat = "stateless_binomial";
  check_counted(kWhat, shape, dtype, /*integers=*/true);
  const Tensor trials = parameter_of(kWhat, {"counts", 0}, counts, shape).floor();
  const Tensor chances =
      parameter_of(kWhat, {.name = "probs", .least = 0, .most = 1}, probs, shape);
  return drawn_one_by_one(shape, seed, dtype, [trials, chances](Philox& random, int64_t i) {
    return internal::draw_binomial(random, trials.data_ptr<double>()[i],
                                   chances.data_ptr<double>()[i]);
  });
}

}  // namespace cohort::random
