#include "cohort/ops/sampling/stateless_fill.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <type_traits>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using random::NormalOptions;
using random::UniformOptions;

// TensorFlow keeps this many blocks for each four numbers whose count of words is not known.
constexpr uint64_t kBlocksOfRedrawn = 256;
constexpr double kStatelessTruncation = 2;  // in standard deviations
constexpr double kLeastUniform = 1e-7;      // of which the logarithm is taken

// Uniform in [0, 1): the lowest bits of a word as the mantissa of a number in [1, 2).
template <class T>
T uniform_of(uint32_t word) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(127u << 23 | (word & 0x7fffffu)) - 1;
  } else {
    constexpr bool kIsHalf = std::is_same_v<T, at::Half>;
    const auto bits =
        static_cast<uint16_t>(kIsHalf ? 15u << 10 | (word & 0x3ffu) : 127u << 7 | (word & 0x7fu));
    return static_cast<T>(static_cast<float>(T(bits, T::from_bits())) - 1);
  }
}
double uniform_of(uint32_t high, uint32_t low) {
  const uint64_t mantissa = uint64_t{high & 0xfffffu} << 32 | low;
  return std::bit_cast<double>(uint64_t{1023} << 52 | mantissa) - 1;
}

// Two standard normals by Box and Muller, in the precision of the uniform numbers.
template <class T>
std::array<T, 2> normal_pair(T u, T v) {
  constexpr T kMinusTwo = -2;
  const T radius = std::sqrt(kMinusTwo * std::log(std::max(u, static_cast<T>(kLeastUniform))));
  const T angle = static_cast<T>(2 * std::numbers::pi * static_cast<double>(v));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

// How a dtype's numbers come of words.
template <class T>
struct Floats {
  static constexpr size_t kWordsOfUniform = 1;
  static T uniform(const uint32_t* words) { return uniform_of<T>(words[0]); }
  // Not yet rounded to T.
  static std::array<float, 2> normals(const uint32_t* words) {
    return normal_pair(uniform_of<float>(words[0]), uniform_of<float>(words[1]));
  }
};
template <>
struct Floats<double> {
  static constexpr size_t kWordsOfUniform = 2;
  static double uniform(const uint32_t* words) { return uniform_of(words[0], words[1]); }
  static std::array<double, 2> normals(const uint32_t* words) {
    return normal_pair(uniform(words), uniform(words + 2));
  }
};

// Calls each(words, i) for i = 0, step, 2 step, ... below `count`, with the next `width` words.
template <class Each>
void for_words(Philox& random, size_t count, size_t step, size_t width, Each&& each) {
  std::array<uint32_t, 256> words;
  size_t used = words.size();
  for (size_t i = 0; i < count; i += step, used += width) {
    if (used == words.size()) {
      random.fill(words);
      used = 0;
    }
    each(words.data() + used, i);
  }
}

template <class T>
void fill_of(Philox& random, std::span<T> out, const UniformOptions& options) {
  if constexpr (std::is_integral_v<T>) {
    using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    const auto lowest = static_cast<Word>(static_cast<int64_t>(options.minval));
    const auto range = static_cast<Word>(static_cast<int64_t>(options.maxval)) - lowest;
    constexpr size_t kWidth = sizeof(Word) / 4;
    for_words(random, out.size(), 1, kWidth, [&](const uint32_t* words, size_t i) {
      const Word bits =
          kWidth == 1 ? words[0] : static_cast<Word>(words[0] | uint64_t{words[kWidth - 1]} << 32);
      out[i] = static_cast<T>(lowest + bits % range);
    });
  } else {
    const T minval = static_cast<T>(options.minval);
    const T range = static_cast<T>(static_cast<T>(options.maxval) - minval);
    for_words(random, out.size(), 1, Floats<T>::kWordsOfUniform,
              [&](const uint32_t* words, size_t i) {
                out[i] = static_cast<T>(Floats<T>::uniform(words) * range) + minval;
              });
  }
}

// A standard normal, rounded to T after each step.
template <class T, class Wide>
T scaled_normal(Wide number, const NormalOptions& options) {
  const T scaled = static_cast<T>(static_cast<T>(number) * static_cast<T>(options.stddev));
  return static_cast<T>(scaled + static_cast<T>(options.mean));
}

template <class T>
void fill_of(Philox& random, std::span<T> out, const NormalOptions& options) {
  for_words(random, out.size(), 2, 2 * Floats<T>::kWordsOfUniform,
            [&](const uint32_t* words, size_t i) {
              const auto pair = Floats<T>::normals(words);
              out[i] = scaled_normal<T>(pair[0], options);
              if (i + 1 < out.size()) out[i + 1] = scaled_normal<T>(pair[1], options);
            });
}

template <class T>
void fill_truncated(Philox& random, std::span<T> out, const NormalOptions& options) {
  constexpr size_t kWidth = 2 * Floats<T>::kWordsOfUniform;
  constexpr size_t kGroup = 4 / Floats<T>::kWordsOfUniform;  // numbers that begin together
  for (size_t group = 0; group * kGroup < out.size(); ++group) {
    random.seek(group * kGroup * kBlocksOfRedrawn);
    const auto wanted = out.subspan(group * kGroup, std::min(kGroup, out.size() - group * kGroup));
    for (size_t found = 0; found < wanted.size();) {
      std::array<uint32_t, kWidth> words;
      random.fill(words);
      for (const auto number : Floats<T>::normals(words.data())) {
        if (!(std::abs(number) < kStatelessTruncation)) continue;
        if (found < wanted.size()) wanted[found++] = scaled_normal<T>(number, options);
      }
    }
  }
}

template <class T>
std::span<T> numbers_in(const Tensor& tensor) {
  return {tensor.data_ptr<T>(), static_cast<size_t>(tensor.numel())};
}

template <class Fill>
void for_floats(const Tensor& out, Fill&& fill) {
  switch (out.scalar_type()) {
    case DType::Float:
      return fill(numbers_in<float>(out));
    case DType::Double:
      return fill(numbers_in<double>(out));
    case DType::Half:
      return fill(numbers_in<at::Half>(out));
    default:
      return fill(numbers_in<at::BFloat16>(out));
  }
}

template <class Fill>
void for_integers(const Tensor& out, Fill&& fill) {
  switch (out.scalar_type()) {
    case DType::Byte:
      return fill(numbers_in<uint8_t>(out));
    case DType::Char:
      return fill(numbers_in<int8_t>(out));
    case DType::Short:
      return fill(numbers_in<int16_t>(out));
    case DType::Int:
      return fill(numbers_in<int32_t>(out));
    default:
      return fill(numbers_in<int64_t>(out));
  }
}

// TensorFlow's maxval is a number of the dtype, which is why none draws the largest.
template <class T>
void check_bounds(const UniformOptions& options) {
  constexpr auto kLowest = static_cast<double>(std::numeric_limits<T>::min());
  const double above_highest = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const bool whole =
      std::floor(options.minval) == options.minval && std::floor(options.maxval) == options.maxval;
  if (whole && options.minval >= kLowest && options.maxval < above_highest) return;
  throw InvalidArgumentError(str("random::stateless_uniform of ", dtype_name(options.dtype),
                                 " needs whole bounds that the dtype can hold, but got [",
                                 options.minval, ", ", options.maxval, ")"));
}

}  // namespace

void fill_stateless_uniform(Philox random, const Tensor& out, const UniformOptions& options) {
  if (out.is_floating_point()) {
    return for_floats(out, [&](auto span) { fill_of(random, span, options); });
  }
  for_integers(out, [&]<class T>(std::span<T> span) {
    check_bounds<T>(options);
    fill_of(random, span, options);
  });
}

void fill_stateless_full_int(Philox random, const Tensor& out) {
  for_integers(out, [&]<class T>(std::span<T> span) {
    constexpr size_t kWidth = sizeof(T) == 8 ? 2 : 1;
    for_words(random, span.size(), 1, kWidth, [&](const uint32_t* words, size_t i) {
      span[i] = static_cast<T>(words[0] | uint64_t{words[kWidth - 1]} << 32);
    });
  });
}

void fill_stateless_normal(Philox random, const Tensor& out, const NormalOptions& options) {
  for_floats(out, [&](auto span) { fill_of(random, span, options); });
}

void fill_stateless_truncated_normal(Philox random, const Tensor& out,
                                     const NormalOptions& options) {
  for_floats(out, [&](auto span) { fill_truncated(random, span, options); });
}

}  // namespace cohort::internal
