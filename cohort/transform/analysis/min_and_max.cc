// The least and the greatest value.

#include <algorithm>
#include <cmath>
#include <limits>

#include "cohort/core/bytes/fields.h"
#include "cohort/transform/analysis/attributes.h"
#include "cohort/transform/analysis/feature_accumulator.h"
#include "cohort/transform/analysis/simple_analysis.h"

namespace cohort::internal {
namespace {

// The least and greatest of some values of type T.
template <class T>
struct Extremes {
  static constexpr T kGreatest = std::numeric_limits<T>::has_infinity
                                     ? std::numeric_limits<T>::infinity()
                                     : std::numeric_limits<T>::max();
  static constexpr T kLeast = std::numeric_limits<T>::has_infinity
                                  ? -std::numeric_limits<T>::infinity()
                                  : std::numeric_limits<T>::lowest();
  T min = kGreatest;
  T max = kLeast;
  bool has_nan = false;

  void add(T value) {
    min = value < min ? value : min;
    max = value > max ? value : max;
    has_nan |= value != value;
  }
  void merge(const Extremes& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    has_nan |= other.has_nan;
  }
};

// Values that lie side by side are compared in lanes, which the compiler makes vectors of.
template <class T>
Extremes<T> extremes_of(const T* values, int64_t count, int64_t stride) {
  constexpr int64_t kLanes = 16;
  Extremes<T> all;
  int64_t done = 0;
  if (stride == 1) {
    T mins[kLanes];
    T maxs[kLanes];
    int nans[kLanes] = {};
    for (int64_t k = 0; k < kLanes; ++k) mins[k] = all.min, maxs[k] = all.max;
    for (; done + kLanes <= count; done += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) {
        const T value = values[done + k];
        mins[k] = value < mins[k] ? value : mins[k];
        maxs[k] = value > maxs[k] ? value : maxs[k];
        nans[k] |= value != value;
      }
    }
    for (int64_t k = 0; k < kLanes; ++k) {
      all.merge({mins[k], maxs[k], nans[k] != 0});
    }
  }
  for (; done < count; ++done) all.add(values[done * stride]);
  return all;
}

// Integers and floating point numbers of one feature; it has one of both.
class MinMaxFeature {
 public:
  template <class T>
  void add(const T* values, int64_t count, int64_t stride) {
    if (count == 0) return;
    const Extremes<T> some = extremes_of(values, count, stride);
    if constexpr (std::is_integral_v<T>) {
      whole_.merge({some.min, some.max});
    } else {
      numbers_.merge({some.min, some.max, some.has_nan});
    }
    has_values_ = true;
  }
  void merge(const MinMaxFeature& other) {
    numbers_.merge(other.numbers_);
    whole_.merge(other.whole_);
    has_values_ |= other.has_values_;
  }

  std::string saved() const { return encode_fields(*this); }
  void add_saved(std::string_view bytes, std::string_view what) {
    merge(decode_fields<MinMaxFeature>(bytes, what));
  }
  friend void fields(auto& f, MinMaxFeature& feature) {
    f(1, feature.numbers_.min, kAlways);
    f(2, feature.numbers_.max, kAlways);
    f(3, feature.numbers_.has_nan);
    f(4, feature.whole_.min, kAlways);
    f(5, feature.whole_.max, kAlways);
    f(6, feature.has_values_);
  }

  // + 0.0: of zeros that compare equal, the result does not depend on their order.
  double min() const { return numbers_.has_nan ? NAN : numbers_.min + 0.0; }
  double max() const { return numbers_.has_nan ? NAN : numbers_.max + 0.0; }
  // `greatest` is that of the dtype, for a feature without values.
  int64_t whole_min(int64_t greatest) const { return has_values_ ? whole_.min : greatest; }
  int64_t whole_max(int64_t greatest) const { return has_values_ ? whole_.max : -greatest; }

 private:
  Extremes<double> numbers_;
  Extremes<int64_t> whole_;
  bool has_values_ = false;
};

// The greatest number of a dtype of integers. That of no values is its negative and not the lowest
// number, as in tf.Transform.
int64_t greatest_of(DType dtype) {
  switch (dtype) {
    case DType::Byte:
      return std::numeric_limits<uint8_t>::max();
    case DType::Char:
      return std::numeric_limits<int8_t>::max();
    case DType::Short:
      return std::numeric_limits<int16_t>::max();
    case DType::Int:
      return std::numeric_limits<int32_t>::max();
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

class MinMaxAccumulator final : public FeatureAccumulator<MinMaxFeature> {
 public:
  MinMaxAccumulator(std::string name, const NumericOptions& options)
      : FeatureAccumulator(std::move(name), 1, options) {}

 private:
  AnalysisResult result() override {
    const DType dtype = form().dtype();
    if (form().is_floating()) {
      return {{{"min", form().result(of_features([](auto& f) { return f.min(); }), dtype)},
               {"max", form().result(of_features([](auto& f) { return f.max(); }), dtype)}}};
    }
    const int64_t most = greatest_of(dtype);
    return {
        {{"min", form().result(of_features([&](auto& f) { return f.whole_min(most); }), dtype)},
         {"max", form().result(of_features([&](auto& f) { return f.whole_max(most); }), dtype)}}};
  }
};

}  // namespace

AnalysisPtr min_and_max_analysis(const NumericOptions& options) {
  return simple_analysis(
      {.kind = "min_and_max", .attributes = attributes_of(options), .result_names = {"min", "max"}},
      [options](std::string name, const AnalysisContext&) {
        return std::make_unique<MinMaxAccumulator>(std::move(name), options);
      });
}

}  // namespace cohort::internal
