// Mean and variance of one pass: the exact sums of the values and of their squares.

#include "cohort/core/bytes/fields.h"
#include "cohort/transform/analysis/attributes.h"
#include "cohort/transform/analysis/feature_accumulator.h"
#include "cohort/transform/analysis/simple_analysis.h"

namespace cohort::internal {
namespace {

// The finite values of one feature.
class Moments {
 public:
  template <class T>
  void add(const T* values, int64_t count, int64_t stride) {
    for (int64_t begin = 0; begin < count; begin += ExactSum::kMaxAdditions) {
      add_block(values + begin * stride, std::min(ExactSum::kMaxAdditions, count - begin), stride);
    }
  }
  void merge(const Moments& other) {
    sum_.add(other.sum_);
    squares_.add(other.squares_);
    count_ += other.count_;
  }

  std::string saved() const { return encode_fields(Saved{count_, sum_.saved(), squares_.saved()}); }
  void add_saved(std::string_view bytes, std::string_view what) {
    const auto saved = decode_fields<Saved>(bytes, what);
    const WireReader reader(bytes, what);
    if (saved.count < 0) reader.fail_range();
    sum_.add_saved(saved.sum, what);
    squares_.add_saved(saved.squares, what);
    if (__builtin_add_overflow(count_, saved.count, &count_)) reader.fail_range();
  }

  int64_t count() const { return count_; }
  double mean(const FloatForm& form) const {
    return count_ == 0 ? 0 : rounded_mean(sum_, count_, form);
  }
  double variance(const FloatForm& form) const {
    return count_ == 0 ? 0 : rounded_variance(sum_, squares_, count_, form);
  }

 private:
  struct Saved {
    int64_t count = 0;
    std::string sum;
    std::string squares;
    friend void fields(auto& f, Saved& saved) {
      f(1, saved.count);
      f(2, saved.sum);
      f(3, saved.squares);
    }
  };

  template <class T>
  void add_block(const T* values, int64_t count, int64_t stride) {
    sum_.make_room(count);
    squares_.make_room(count);
    count_ += count;
    for (int64_t i = 0; i < count; ++i) add_value(values[i * stride]);
  }
  void add_value(float value) {
    if (!is_finite(value)) [[unlikely]] {
      --count_;
      return;
    }
    const Parts parts = parts_of(value);
    sum_.add_small(parts.mantissa, parts.exponent);
    squares_.add_scaled(parts.mantissa * parts.mantissa, 2 * parts.exponent);
  }
  void add_value(double value) {
    if (!is_finite(value)) [[unlikely]] {
      --count_;
      return;
    }
    const Parts parts = parts_of(value);
    sum_.add_scaled(parts.mantissa, parts.exponent);
    add_square(parts.mantissa, 2 * parts.exponent);
  }
  void add_value(int64_t value) {
    sum_.add_scaled(value, 0);
    add_square(value, 0);
  }
  void add_value(int32_t value) {
    sum_.add_scaled(value, 0);
    squares_.add_scaled(int64_t{value} * value, 0);
  }
  void add_square(int64_t value, int exponent) {
    const auto wide = static_cast<Int128>(value);
    squares_.add_square(static_cast<UInt128>(wide * wide), exponent);
  }

  ExactSum sum_;
  ExactSquares squares_;
  int64_t count_ = 0;
};

class MomentsAccumulator final : public FeatureAccumulator<Moments> {
 public:
  MomentsAccumulator(std::string name, const NumericOptions& options)
      : FeatureAccumulator(std::move(name), 1, options) {}

 private:
  AnalysisResult result() override {
    const DType dtype = form().is_floating() ? form().dtype() : float32;
    const FloatForm rounding = float_form(dtype);
    auto means = of_features([&](auto& f) { return f.mean(rounding); });
    auto variances = of_features([&](auto& f) { return f.variance(rounding); });
    auto counts = of_features([](auto& f) { return f.count(); });
    return {{{"mean", form().result(means, dtype)},
             {"variance", form().result(variances, dtype)},
             {"count", form().result(counts, int64)}}};
  }
};

}  // namespace

AnalysisPtr mean_and_variance_analysis(const NumericOptions& options) {
  return simple_analysis({.kind = "mean_and_variance",
                          .attributes = attributes_of(options),
                          .result_names = {"mean", "variance", "count"}},
                         [options](std::string name, const AnalysisContext&) {
                           return std::make_unique<MomentsAccumulator>(std::move(name), options);
                         });
}

}  // namespace cohort::internal
