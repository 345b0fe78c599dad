#include "cohort/ops/random_fill.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using random::NormalOptions;
using random::UniformOptions;

constexpr double kTruncation = 2;  // in standard deviations

// Words are drawn in runs of this many, so that they come by the block and stay in the first cache.
constexpr size_t kRun = 256;

template <class T>
std::span<T> elements(const Tensor& tensor) {
  return {tensor.data_ptr<T>(), static_cast<size_t>(tensor.numel())};
}

// Calls fill(std::span<T>) for the floating dtype of `tensor`.
template <class Fill>
void for_floating_elements(const Tensor& tensor, Fill&& fill) {
  switch (tensor.scalar_type()) {
    case DType::Float:
      return fill(elements<float>(tensor));
    case DType::Double:
      return fill(elements<double>(tensor));
    case DType::Half:
      return fill(elements<at::Half>(tensor));
    default:
      return fill(elements<at::BFloat16>(tensor));
  }
}

template <class T>
T rounded(double value) {
  return static_cast<T>(static_cast<float>(value));
}
template <>
double rounded(double value) {
  return value;
}

// Rounding may reach maxval, which the range excludes; that sliver of it then goes to minval.
template <class T>
T into_range(double fraction, const UniformOptions& options) {
  const T value = rounded<T>(options.minval + fraction * (options.maxval - options.minval));
  return static_cast<double>(value) < options.maxval ? value : rounded<T>(options.minval);
}

template <class T>
void fill_floats(Philox& random, std::span<T> out, const UniformOptions& options) {
  std::array<uint32_t, kRun> words;
  for (size_t done = 0; done < out.size(); done += kRun) {
    const auto run = out.subspan(done, std::min(kRun, out.size() - done));
    random.fill(std::span(words).first(run.size()));
    for (size_t i = 0; i < run.size(); ++i) {
      run[i] = into_range<T>((words[i] >> 8) * 0x1p-24, options);
    }
  }
}

void fill_floats(Philox& random, std::span<double> out, const UniformOptions& options) {
  for (double& element : out) element = into_range<double>(random.next_double(), options);
}

// How many values [minval, maxval) has; 0 stands for 2^64. As doubles all limits are exact; maxval
// may be one above the largest Integer.
template <class Integer>
uint64_t count_integers(const UniformOptions& options) {
  constexpr double kLowest = std::numeric_limits<Integer>::min();
  const double above_highest = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
  const bool whole =
      std::floor(options.minval) == options.minval && std::floor(options.maxval) == options.maxval;
  if (!whole || options.minval < kLowest || options.maxval > above_highest) {
    throw InvalidArgumentError(str("random::uniform of ", dtype_name(options.dtype),
                                   " needs whole bounds that the dtype can hold, but got [",
                                   options.minval, ", ", options.maxval, ")"));
  }
  const auto bits = [](double x) {
    return x == 0x1p63 ? uint64_t{1} << 63 : static_cast<uint64_t>(static_cast<int64_t>(x));
  };
  return bits(options.maxval) - bits(options.minval);
}

template <class Integer>
void fill_integers(Philox& random, std::span<Integer> out, const UniformOptions& options) {
  const uint64_t count = count_integers<Integer>(options);
  const auto lowest = static_cast<uint64_t>(static_cast<int64_t>(options.minval));
  for (Integer& element : out) {
    const uint64_t offset = count == 0 ? random.next_u64() : random.below(count);
    element = static_cast<Integer>(lowest + offset);
  }
}

// One word for each number, two words for each pair; of an odd last pair the second is dropped.
template <class T>
void fill_normals(Philox& random, std::span<T> out, const NormalOptions& options) {
  std::array<uint32_t, kRun> words;
  for (size_t done = 0; done < out.size(); done += kRun) {
    const auto run = out.subspan(done, std::min(kRun, out.size() - done));
    random.fill(std::span(words).first((run.size() + 1) / 2 * 2));
    for (size_t i = 0; i < run.size(); i += 2) {
      const auto pair = Philox::normals_of((words[i] + 1.0) * 0x1p-32, words[i + 1] * 0x1p-32);
      run[i] = rounded<T>(options.mean + options.stddev * pair[0]);
      if (i + 1 < run.size()) run[i + 1] = rounded<T>(options.mean + options.stddev * pair[1]);
    }
  }
}

void fill_normals(Philox& random, std::span<double> out, const NormalOptions& options) {
  for (size_t i = 0; i < out.size(); i += 2) {
    const auto pair = random.next_normals();
    out[i] = options.mean + options.stddev * pair[0];
    if (i + 1 < out.size()) out[i + 1] = options.mean + options.stddev * pair[1];
  }
}

// Counts the numbers of a pair that are within; a pair takes four words whatever the dtype. Most
// pairs show by their first number that both are: their radius is below the truncation.
uint64_t count_within(const uint32_t* words) {
  constexpr double kSurelyWithin = 0.1354;  // above exp(-2)
  const auto fraction = [](const uint32_t* pair) {
    return static_cast<double>((pair[0] | uint64_t{pair[1]} << 32) >> 11) * 0x1p-53;
  };
  const double u = 1 - fraction(words);
  if (u >= kSurelyWithin) return 2;
  uint64_t count = 0;
  for (const double z : Philox::normals_of(u, fraction(words + 2))) {
    if (std::abs(z) <= kTruncation) ++count;
  }
  return count;
}

template <class T>
void fill_truncated_normals(Philox& random, std::span<T> out, const NormalOptions& options) {
  size_t i = 0;
  while (i < out.size()) {
    for (double z : random.next_normals()) {
      if (i == out.size() || std::abs(z) > kTruncation) continue;
      out[i++] = rounded<T>(options.mean + options.stddev * z);
    }
  }
}

}  // namespace

bool is_random_float(DType dtype) {
  return dtype == DType::Float || dtype == DType::Double || dtype == DType::Half ||
         dtype == DType::BFloat16;
}

bool is_random_integer(DType dtype) {
  return dtype == DType::Byte || dtype == DType::Char || dtype == DType::Short ||
         dtype == DType::Int || dtype == DType::Long;
}

void fill_uniform(Philox& random, const Tensor& out, const UniformOptions& options) {
  switch (out.scalar_type()) {
    case DType::Byte:
      return fill_integers(random, elements<uint8_t>(out), options);
    case DType::Char:
      return fill_integers(random, elements<int8_t>(out), options);
    case DType::Short:
      return fill_integers(random, elements<int16_t>(out), options);
    case DType::Int:
      return fill_integers(random, elements<int32_t>(out), options);
    case DType::Long:
      return fill_integers(random, elements<int64_t>(out), options);
    default:
      for_floating_elements(out, [&](auto span) { fill_floats(random, span, options); });
  }
}

void fill_normal(Philox& random, const Tensor& out, const NormalOptions& options) {
  for_floating_elements(out, [&](auto span) { fill_normals(random, span, options); });
}

void fill_truncated_normal(Philox& random, const Tensor& out, const NormalOptions& options) {
  for_floating_elements(out, [&](auto span) { fill_truncated_normals(random, span, options); });
}

uint64_t pass_truncated_normals(Philox& random, uint64_t count) {
  constexpr size_t kWordsOfPair = 4;
  std::array<uint32_t, kRun> words;
  while (count > 0) {
    const uint64_t begin = random.position();
    random.fill(words);
    for (size_t i = 0; i < kRun && count > 0; i += kWordsOfPair) {
      const uint64_t within = count_within(words.data() + i);
      if (within > count) {
        random.seek(begin + i);
        return count;
      }
      count -= within;
      if (count == 0) random.seek(begin + i + kWordsOfPair);
    }
  }
  return 0;
}

}  // namespace cohort::internal
