#include "cohort/transform/analysis/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cohort/core/bytes/fields.h"

namespace cohort::internal {
namespace {

using Digits = std::vector<uint32_t>;

void trim(Digits& digits) {
  while (!digits.empty() && digits.back() == 0) digits.pop_back();
}

Digits product(const Digits& a, const Digits& b) {
  Digits out(a.size() + b.size(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0) continue;  // most are: few numbers use all exponents
    uint64_t carry = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      carry += uint64_t{a[i]} * b[j] + out[i + j];
      out[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    out[i + b.size()] = static_cast<uint32_t>(carry);
  }
  trim(out);
  return out;
}

// a - b, where a is at least b.
Digits difference(Digits a, const Digits& b) {
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    borrow += a[i];
    if (i < b.size()) borrow -= b[i];
    a[i] = static_cast<uint32_t>(borrow);
    borrow >>= 32;
  }
  trim(a);
  return a;
}

// Divides; whether there was a remainder.
bool divide(Digits& digits, uint64_t divisor) {
  UInt128 rest = 0;
  for (size_t i = digits.size(); i-- > 0;) {
    rest = rest << 32 | digits[i];
    digits[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  trim(digits);
  return rest != 0;
}

// Bits [low, low + 64) of the number.
uint64_t bits_from(const Digits& digits, int64_t low) {
  uint64_t bits = 0;
  for (int64_t i = low / 32; i <= low / 32 + 2; ++i) {
    if (i >= std::ssize(digits)) break;
    const int64_t shift = 32 * i - low;
    const auto digit = uint64_t{digits[static_cast<size_t>(i)]};
    if (shift < 64) bits |= shift >= 0 ? digit << shift : digit >> -shift;
  }
  return bits;
}

// Whether any of the bits below `low` is set.
bool any_below(const Digits& digits, int64_t low) {
  const auto whole = static_cast<size_t>(low / 32);
  for (size_t i = 0; i < std::min(whole, digits.size()); ++i) {
    if (digits[i] != 0) return true;
  }
  return whole < digits.size() && (digits[whole] & ((uint32_t{1} << (low % 32)) - 1)) != 0;
}

struct SavedSum {
  uint32_t first = 0;          // the limb of the first digit
  std::vector<int64_t> limbs;  // of 32 bits but for the last, which has the sign
};
void fields(auto& f, SavedSum& saved) {
  f(1, saved.first);
  f(2, saved.limbs);
}

}  // namespace

double round_number(const WholeNumber& whole, int exponent, bool more, const FloatForm& form) {
  Digits digits = whole.digits;
  trim(digits);
  if (digits.empty()) return 0;
  const int64_t highest = 32 * std::ssize(digits) - 1 - std::countl_zero(digits.back());
  // The place in `digits` of the last bit that the result has.
  const int64_t last = std::max<int64_t>(highest - (form.precision - 1), form.lowest - exponent);
  uint64_t mantissa = 0;
  if (last <= 0) {
    mantissa = bits_from(digits, 0) << -last;  // `more` cannot matter: see the forms and kLowest
  } else {
    mantissa = bits_from(digits, last);
    const bool half = (bits_from(digits, last - 1) & 1) != 0;
    const bool rest = more || any_below(digits, last - 1);
    if (half && (rest || (mantissa & 1) != 0)) ++mantissa;
  }
  const double magnitude =
      std::ldexp(static_cast<double>(mantissa), static_cast<int>(last) + exponent);
  return whole.negative ? -magnitude : magnitude;
}

template <int kLowest, int kLimbs>
FixedPoint<kLowest, kLimbs>& FixedPoint<kLowest, kLimbs>::add(double value) {
  make_room(1);
  const Parts parts = parts_of(value);
  add_scaled(parts.mantissa, parts.exponent);
  return *this;
}

template <int kLowest, int kLimbs>
FixedPoint<kLowest, kLimbs>& FixedPoint<kLowest, kLimbs>::add(const FixedPoint& other) {
  FixedPoint normal = other;
  normal.normalize();
  make_room(2);  // the limbs of a normal one, whose last has a sign, are two additions at most
  for (size_t i = 0; i < limbs_.size(); ++i) limbs_[i] += normal.limbs_[i];
  return *this;
}

template <int kLowest, int kLimbs>
void FixedPoint<kLowest, kLimbs>::normalize() {
  int64_t carry = 0;
  for (size_t i = 0; i + 1 < limbs_.size(); ++i) {
    const int64_t limb = limbs_[i] + carry;
    carry = limb >> 32;
    limbs_[i] = limb & 0xffffffff;
  }
  limbs_.back() += carry;
  additions_ = 0;
}

template <int kLowest, int kLimbs>
bool FixedPoint<kLowest, kLimbs>::is_zero() const {
  return whole().digits.empty();
}

template <int kLowest, int kLimbs>
WholeNumber FixedPoint<kLowest, kLimbs>::whole() const {
  FixedPoint copy = *this;
  copy.normalize();
  WholeNumber whole;
  whole.negative = copy.limbs_.back() < 0;
  if (whole.negative) {
    for (int64_t& limb : copy.limbs_) limb = -limb;
    copy.normalize();
  }
  whole.digits.reserve(limbs_.size() + 1);
  for (const int64_t limb : copy.limbs_) whole.digits.push_back(static_cast<uint32_t>(limb));
  whole.digits.push_back(static_cast<uint32_t>(copy.limbs_.back() >> 32));
  trim(whole.digits);
  return whole;
}

template <int kLowest, int kLimbs>
std::string FixedPoint<kLowest, kLimbs>::saved() const {
  FixedPoint copy = *this;
  copy.normalize();
  const auto is_used = [](int64_t limb) { return limb != 0; };
  const auto begin = std::ranges::find_if(copy.limbs_, is_used);
  const auto end = std::find_if(copy.limbs_.rbegin(), copy.limbs_.rend(), is_used).base();
  SavedSum saved;
  if (begin < end) {
    saved.first = static_cast<uint32_t>(begin - copy.limbs_.begin());
    saved.limbs.assign(begin, end);
  }
  return encode_fields(saved);
}

template <int kLowest, int kLimbs>
void FixedPoint<kLowest, kLimbs>::add_saved(std::string_view bytes, std::string_view what) {
  const auto saved = decode_fields<SavedSum>(bytes, what);
  const WireReader reader(bytes, what);
  if (saved.first > limbs_.size() || saved.limbs.size() > limbs_.size() - saved.first) {
    reader.fail("has a sum of more digits than a sum can have");
  }
  make_room(2);
  for (size_t i = 0; i < saved.limbs.size(); ++i) {
    constexpr int64_t kMost = int64_t{1} << 32;
    if (saved.limbs[i] >= kMost || saved.limbs[i] < -kMost) {
      reader.fail("has a sum with a digit of more than 32 bits");
    }
    limbs_[saved.first + i] += saved.limbs[i];
  }
}

template class FixedPoint<-1088, 70>;
template class FixedPoint<-2176, 137>;

double rounded_mean(const ExactSum& sum, int64_t count, const FloatForm& form) {
  WholeNumber whole = sum.whole();
  const bool more = divide(whole.digits, static_cast<uint64_t>(count));
  return round_number(whole, ExactSum::kLowestExponent, more, form);
}

double rounded_variance(const ExactSum& sum, const ExactSquares& squares, int64_t count,
                        const FloatForm& form) {
  static_assert(2 * ExactSum::kLowestExponent == ExactSquares::kLowestExponent);
  const auto n = static_cast<uint64_t>(count);
  const Digits n_digits = {static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32)};
  const Digits total = sum.whole().digits;
  // (n * squares - sum^2) / n^2, in whole numbers; not negative, by the inequality of Cauchy.
  WholeNumber whole;
  whole.digits = difference(product(squares.whole().digits, n_digits), product(total, total));
  const bool more_of_first = divide(whole.digits, n);
  const bool more = divide(whole.digits, n) || more_of_first;
  return round_number(whole, ExactSquares::kLowestExponent, more, form);
}

}  // namespace cohort::internal
