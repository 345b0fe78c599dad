// How much there is of a token: a count, or an exact sum of weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/transform/analysis/exact_sum.h"

namespace cohort::internal {

// Each kind of amount is added to another one, written behind a record and taken off its front
// (Errors of take: DataLoss). Final is what it is ordered and written by in the end.

struct TokenCount {
  using Final = TokenCount;
  int64_t value = 0;

  void add(const TokenCount& other) { value += other.value; }
  void append_to(std::string& out) const;
  static TokenCount take(std::string_view& from);
  TokenCount final() const { return *this; }
  size_t heap_bytes() const { return 0; }

  bool is_above(const TokenCount& other) const { return value > other.value; }
  bool reaches(double threshold) const { return static_cast<double>(value) >= threshold; }
  std::string text() const;
};

// A weight as it is in the end. NaN is below all others.
struct FinalWeight {
  using Final = FinalWeight;
  double value = 0;

  void add(const FinalWeight& other) { value += other.value; }
  void append_to(std::string& out) const;
  static FinalWeight take(std::string_view& from);
  FinalWeight final() const { return *this; }
  size_t heap_bytes() const { return 0; }

  bool is_above(const FinalWeight& other) const {
    return value > other.value || (value == value && other.value != other.value);
  }
  bool reaches(double threshold) const { return value >= threshold; }
  // The text that Python writes of a float: 3.0, 1.75, 1e+16, inf, nan.
  std::string text() const;
};

// The exact sum of weights, in two float64 as long as these hold it: most sums of float32 fit. The
// rest is a longer number.
class ExactWeight {
 public:
  using Final = FinalWeight;

  ExactWeight() = default;
  explicit ExactWeight(double weight) { add(weight); }

  void add(double weight);
  void add(const ExactWeight& other);
  void append_to(std::string& out) const;
  static ExactWeight take(std::string_view& from);
  // Rounded once.
  FinalWeight final() const;
  size_t heap_bytes() const { return rest_ == nullptr ? 0 : sizeof(Rest); }

 private:
  struct Rest {
    ExactSum sum;
    double infinite = 0;  // the sum of what is not finite: an infinity or NaN, in whatever order
  };
  Rest& rest();

  double high_ = 0;
  double low_ = 0;
  std::unique_ptr<Rest> rest_;
};

}  // namespace cohort::internal
