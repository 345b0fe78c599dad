#include "cohort/transform/analysis/token_amounts.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "cohort/core/bytes/varint.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

void append_number(std::string& out, double value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);  // little-endian, as the machine
}
double take_number(std::string_view& from) {
  double value = 0;
  if (from.size() < sizeof value) throw DataLossError("a weight is cut short");
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return value;
}

// a + b as the nearest float64 and what it is off by, which is one, too (Knuth).
struct TwoSum {
  TwoSum(double a, double b) : sum(a + b) {
    const double b_part = sum - a;
    rest = (a - (sum - b_part)) + (b - b_part);
  }
  double sum;
  double rest;
};

enum WeightKind : char { kOneNumber = 1, kTwoNumbers = 2, kWithRest = 3 };

}  // namespace

void TokenCount::append_to(std::string& out) const {
  append_varint(out, static_cast<uint64_t>(value));
}
TokenCount TokenCount::take(std::string_view& from) {
  const auto value = static_cast<int64_t>(take_varint(from));
  if (value < 0) throw DataLossError("a count is negative");
  return {value};
}
std::string TokenCount::text() const { return decimal_digits(value); }

void FinalWeight::append_to(std::string& out) const { append_number(out, value); }
FinalWeight FinalWeight::take(std::string_view& from) { return {take_number(from)}; }

std::string FinalWeight::text() const {
  if (!is_finite(value)) return value != value ? "nan" : value > 0 ? "inf" : "-inf";
  // Python's repr has the fewest digits that give the number again, and an exponent only where the
  // point would be more than 16 digits behind the first one, or 4 zeros before it.
  const double magnitude = std::fabs(value);
  const bool has_exponent = value != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  std::array<char, 64> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value,
                    has_exponent ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string text(digits.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

ExactWeight::Rest& ExactWeight::rest() {
  if (rest_ == nullptr) rest_ = std::make_unique<Rest>();
  return *rest_;
}

void ExactWeight::add(double weight) {
  if (!is_finite(weight)) {
    rest().infinite += weight;
    return;
  }
  const TwoSum first(high_, weight);
  const TwoSum second(low_, first.rest);
  if (!is_finite(first.sum) || !is_finite(second.sum)) {
    rest().sum.add(weight);
    return;
  }
  high_ = first.sum;
  low_ = second.sum;
  if (second.rest != 0) rest().sum.add(second.rest);
}

void ExactWeight::add(const ExactWeight& other) {
  add(other.high_);
  add(other.low_);
  if (other.rest_ == nullptr) return;
  rest().sum.add(other.rest_->sum);
  rest().infinite += other.rest_->infinite;
}

FinalWeight ExactWeight::final() const {
  if (rest_ == nullptr) return {high_ + low_};  // an addition of two is rounded once
  if (!is_finite(rest_->infinite)) return {rest_->infinite};
  ExactSum sum = rest_->sum;
  return {sum.add(high_).add(low_).rounded(kFloat64Form)};
}

void ExactWeight::append_to(std::string& out) const {
  out += rest_ != nullptr ? kWithRest : low_ != 0 ? kTwoNumbers : kOneNumber;
  append_number(out, high_);
  if (low_ != 0 || rest_ != nullptr) append_number(out, low_);
  if (rest_ == nullptr) return;
  append_number(out, rest_->infinite);
  const std::string digits = rest_->sum.saved();
  append_varint(out, digits.size());
  out += digits;
}

ExactWeight ExactWeight::take(std::string_view& from) {
  if (from.empty()) throw DataLossError("a weight is cut short");
  const char kind = from.front();
  from.remove_prefix(1);
  if (kind < kOneNumber || kind > kWithRest) throw DataLossError("a weight has an unknown form");
  ExactWeight weight(take_number(from));
  if (kind == kOneNumber) return weight;
  weight.add(take_number(from));
  if (kind == kTwoNumbers) return weight;
  weight.rest().infinite += take_number(from);
  const uint64_t size = take_varint(from);
  if (size > from.size()) throw DataLossError("a weight is cut short");
  weight.rest().sum.add_saved(from.substr(0, size), "a weight");
  from.remove_prefix(size);
  return weight;
}

}  // namespace cohort::internal
