#include "cohort/ops/philox.h"

#include <algorithm>
#include <cmath>

#include "cohort/core/cpu/vector_clones.h"

namespace cohort::internal {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;  // the golden ratio
constexpr uint32_t kWeyl1 = 0xBB67AE85;  // the square root of 3, less 1
constexpr int kRounds = 10;

__extension__ typedef unsigned __int128 uint128_t;

constexpr uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
constexpr uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// The C library's log, sin and cos differ in the last bit between versions and even between
// processors (some have fused multiply-add); these use nothing but IEEE arithmetic in a fixed
// order.

constexpr int kTerms = 10;  // on the ranges used here the next term is below half an ulp
using Series = std::array<double, kTerms>;

constexpr Series kAtanhSeries = [] {  // atanh(s) = s + s^3 (1/3 + s^2/5 + s^4/7 ...)
  Series terms{};
  for (int i = 0; i < kTerms; ++i) terms[i] = 1.0 / (2 * i + 3);
  return terms;
}();

// (-1)^i / (2i + first)!: the sine's series for first = 1, the cosine's for first = 0.
constexpr Series alternating_factorials(int first) {
  Series terms{};
  double factorial = 1;
  for (int i = 0; i < kTerms; ++i) {
    if (i > 0) factorial *= (2 * i + first - 1) * (2 * i + first);
    terms[i] = (i % 2 == 0 ? 1 : -1) / factorial;
  }
  return terms;
}
constexpr Series kSinSeries = alternating_factorials(1);
constexpr Series kCosSeries = alternating_factorials(0);

double polynomial(const Series& terms, double x) {
  double sum = terms[kTerms - 1];
  for (int i = kTerms - 2; i >= 0; --i) sum = sum * x + terms[i];
  return sum;
}

// The natural logarithm of x in (0, 1], to about an ulp: log(m 2^e) = e log 2 + 2
// atanh((m-1)/(m+1)).
double portable_log(double x) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  constexpr double kLog2High = 6.93147180369123816490e-01;  // its last 20 bits are zero
  constexpr double kLog2Low = 1.90821492927058770002e-10;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  const double series = s2 * polynomial(kAtanhSeries, s2);
  return exponent * kLog2High + (2 * s + (2 * s * series + exponent * kLog2Low));
}

struct SinCos {
  double sin;
  double cos;
};

// The sine and cosine of 2 pi u, u in [0, 1), by Taylor's series on the nearest quarter turn.
SinCos portable_sincos_turns(double u) {
  constexpr double kHalfPi = 1.57079632679489661923;
  const int quarter = static_cast<int>(4 * u + 0.5);
  const double x = (4 * u - quarter) * kHalfPi;
  const double x2 = x * x;
  const double s = x * polynomial(kSinSeries, x2);
  const double c = polynomial(kCosSeries, x2);
  switch (quarter & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

// Philox::block of consecutive counters, side by side: 64-bit lanes, since the products are.
constexpr size_t kLanes = 16;
constexpr size_t kLaneWords = 4 * kLanes;
COHORT_VECTOR_CLONES void blocks(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t* out) {
  uint64_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (size_t i = 0; i < kLanes; ++i) {
    c0[i] = low(counter + i);
    c1[i] = high(counter + i);
    c2[i] = low(stream);
    c3[i] = high(stream);
  }
  uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < kRounds; ++round, k0 += kWeyl0, k1 += kWeyl1) {
    for (size_t i = 0; i < kLanes; ++i) {
      // The masks change nothing: they tell the compiler that halves are multiplied.
      const uint64_t product0 = kMultiplier0 * (c0[i] & 0xffffffffu);
      const uint64_t product1 = kMultiplier1 * (c2[i] & 0xffffffffu);
      c0[i] = product1 >> 32 ^ c1[i] ^ k0;
      c1[i] = product1 & 0xffffffffu;
      c2[i] = product0 >> 32 ^ c3[i] ^ k1;
      c3[i] = product0 & 0xffffffffu;
    }
  }
  for (size_t i = 0; i < kLanes; ++i) {
    out[4 * i] = low(c0[i]);
    out[4 * i + 1] = low(c1[i]);
    out[4 * i + 2] = low(c2[i]);
    out[4 * i + 3] = low(c3[i]);
  }
}

}  // namespace

Philox::Philox(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

std::array<uint32_t, 4> Philox::block(uint64_t seed, uint64_t stream, uint64_t counter) {
  uint32_t c0 = low(counter), c1 = high(counter), c2 = low(stream), c3 = high(stream);
  uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{kMultiplier0} * c0;
    const uint64_t product1 = uint64_t{kMultiplier1} * c2;
    c0 = high(product1) ^ c1 ^ k0;
    c1 = low(product1);
    c2 = high(product0) ^ c3 ^ k1;
    c3 = low(product0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

uint32_t Philox::next_u32() {
  const uint64_t counter = position_ / 4;
  if (counter != cached_counter_) {
    words_ = block(seed_, stream_, counter);
    cached_counter_ = counter;
  }
  return words_[position_++ % 4];
}

uint64_t Philox::next_u64() {
  const uint64_t first = next_u32();
  return first | uint64_t{next_u32()} << 32;
}

uint64_t Philox::below(uint64_t n) {
  // The high half of a 64 by 64 bit product is uniform once the lowest 2^64 mod n low halves are
  // refused. The remainder is computed only where the low half is small enough to need it.
  const auto draw = [&] { return static_cast<uint128_t>(next_u64()) * n; };
  auto product = draw();
  if (static_cast<uint64_t>(product) < n) {
    const uint64_t refused = -n % n;
    while (static_cast<uint64_t>(product) < refused) product = draw();
  }
  return static_cast<uint64_t>(product >> 64);
}

double Philox::next_double() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

float Philox::next_float() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }

double Philox::next_normal() { return next_normals()[0]; }

std::array<double, 2> Philox::next_normals() {
  const double radius_source = 1 - next_double();  // in (0, 1]: its logarithm exists
  return normals_of(radius_source, next_double());
}

std::array<double, 2> Philox::normals_of(double u, double v) {
  const double radius = std::sqrt(-2 * portable_log(u));
  const auto [sin, cos] = portable_sincos_turns(v);
  return {radius * cos, radius * sin};
}

void Philox::fill(std::span<uint32_t> words) {
  size_t i = 0;
  while (i < words.size() && position_ % 4 != 0) words[i++] = next_u32();
  for (; i + kLaneWords <= words.size(); i += kLaneWords, position_ += kLaneWords) {
    blocks(seed_, stream_, position_ / 4, words.data() + i);
  }
  for (; i + 4 <= words.size(); i += 4, position_ += 4) {
    const auto four = block(seed_, stream_, position_ / 4);
    std::copy(four.begin(), four.end(), words.begin() + static_cast<ptrdiff_t>(i));
  }
  while (i < words.size()) words[i++] = next_u32();
}

void Philox::seek(uint64_t position) { position_ = position; }

uint64_t mix_seeds(uint64_t a, uint64_t b) {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  const auto finalise = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  };
  return finalise(finalise(a + kGoldenRatio) + b + kGoldenRatio);
}

}  // namespace cohort::internal
