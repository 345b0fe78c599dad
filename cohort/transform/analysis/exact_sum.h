// Sums without any rounding: numbers of fixed point, so long that every float64, and every square
// of one, is a whole number of their lowest bit. Rounded once, where a result is read.
//
//   ExactSum sum;
//   sum.add(1e300).add(1.0).add(-1e300);
//   sum.rounded(kFloat64Form);       // 1
//
// The order of the additions therefore changes no bit of a result.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/bytes/wire.h"

namespace cohort::internal {

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

// A binary floating point format: bits of its significand, exponent of its least number.
struct FloatForm {
  int precision;
  int lowest;
};
inline constexpr FloatForm kFloat16Form = {11, -24};
inline constexpr FloatForm kBfloat16Form = {8, -133};
inline constexpr FloatForm kFloat32Form = {24, -149};
inline constexpr FloatForm kFloat64Form = {53, -1074};

// A whole number, in digits of 32 bits, the lowest first.
struct WholeNumber {
  std::vector<uint32_t> digits;
  bool negative = false;
};

// The number nearest to `whole` * 2^`exponent` in `form`, ties to even; infinite beyond its range
// only if that is float64's. `more`: the number's magnitude is a little greater, by less than 1.
double round_number(const WholeNumber& whole, int exponent, bool more, const FloatForm& form);

// The sum of limb[i] * 2^(kLowest + 32 * i). Additions carry nothing, so that they need a few
// instructions; normalize() does, before 2^30 of them can overflow a limb.
// kLowest is a multiple of 32. Thread safety: none.
template <int kLowest, int kLimbs>
class FixedPoint {
 public:
  static constexpr int kLowestExponent = kLowest;
  // How many calls of add_* there may be between two calls of normalize().
  static constexpr int64_t kMaxAdditions = int64_t{1} << 29;

  // Adds `mantissa` * 2^`exponent`; at least 2^kLowest, of magnitude below 2^64.
  void add_scaled(int64_t mantissa, int exponent) {
    const auto place = static_cast<unsigned>(exponent - kLowest);
    add_at(place / 32, static_cast<Int128>(mantissa) << (place % 32));
  }
  // The same where `mantissa` has at most 31 bits.
  void add_small(int64_t mantissa, int exponent) {
    const auto place = static_cast<unsigned>(exponent - kLowest);
    const int64_t term = mantissa << (place % 32);
    int64_t* const limb = &limbs_[place / 32];
    limb[0] += static_cast<uint32_t>(term);
    limb[1] += term >> 32;
  }
  // Adds `square` * 2^`exponent`.
  void add_square(UInt128 square, int exponent) {
    const auto place = static_cast<unsigned>(exponent - kLowest);
    const auto low = static_cast<UInt128>(static_cast<uint64_t>(square)) << (place % 32);
    const auto high = (square >> 64) << (place % 32);
    int64_t* const limb = &limbs_[place / 32];
    limb[0] += static_cast<uint32_t>(low);
    limb[1] += static_cast<uint32_t>(low >> 32);
    limb[2] += static_cast<int64_t>(low >> 64) + static_cast<uint32_t>(high);
    limb[3] += static_cast<uint32_t>(high >> 32);
    limb[4] += static_cast<int64_t>(high >> 64);
  }

  // Adds a finite number, and normalizes where that is due.
  FixedPoint& add(double value);
  FixedPoint& add(const FixedPoint& other);
  // Carries from limb to limb; equal sums have equal limbs then.
  void normalize();
  // Before `count` additions.
  void make_room(int64_t count) {
    additions_ += count;
    if (additions_ > kMaxAdditions) {
      normalize();
      additions_ = count;
    }
  }

  bool is_zero() const;
  WholeNumber whole() const;  // in units of 2^kLowest
  double rounded(const FloatForm& form) const {
    return round_number(whole(), kLowest, false, form);
  }

  // A list of fields for fields.h has no place for checks over several of them.
  std::string saved() const;
  // Adds what saved() gave. Errors: DataLoss (`what` is damaged).
  void add_saved(std::string_view bytes, std::string_view what);

 private:
  void add_at(unsigned index, Int128 term) {
    int64_t* const limb = &limbs_[index];
    limb[0] += static_cast<uint32_t>(term);
    limb[1] += static_cast<uint32_t>(term >> 32);
    limb[2] += static_cast<int64_t>(term >> 64);
  }

  std::array<int64_t, kLimbs> limbs_ = {};
  int64_t additions_ = 0;  // since it was normalized
};

// For up to 2^63 float64, and for as many of their squares.
using ExactSum = FixedPoint<-1088, 70>;
using ExactSquares = FixedPoint<-2176, 137>;

// A finite number as mantissa * 2^exponent.
struct Parts {
  int64_t mantissa;
  int exponent;
};
inline bool is_finite(float value) { return (std::bit_cast<uint32_t>(value) << 1) < 0xff000000u; }
inline bool is_finite(double value) {
  return (std::bit_cast<uint64_t>(value) << 1) < 0xffe0'0000'0000'0000u;
}
inline Parts parts_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto field = static_cast<int>(bits >> 23 & 0xff);
  const int is_normal = field != 0;
  const int32_t magnitude = static_cast<int32_t>(bits & 0x7fffff) | is_normal << 23;
  const int32_t sign = -static_cast<int32_t>(bits >> 31);
  return {(magnitude ^ sign) - sign, field - is_normal - 149};
}
inline Parts parts_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto field = static_cast<int>(bits >> 52 & 0x7ff);
  const int is_normal = field != 0;
  const int64_t magnitude =
      static_cast<int64_t>(bits & 0xf'ffff'ffff'ffffu) | static_cast<int64_t>(is_normal) << 52;
  const int64_t sign = -static_cast<int64_t>(bits >> 63);
  return {(magnitude ^ sign) - sign, field - is_normal - 1074};
}

// sum / count, rounded once. count > 0.
double rounded_mean(const ExactSum& sum, int64_t count, const FloatForm& form);
// The variance of `count` > 0 numbers of these sums, rounded once.
double rounded_variance(const ExactSum& sum, const ExactSquares& squares, int64_t count,
                        const FloatForm& form);

}  // namespace cohort::internal
