// Sums, and the number of values.

#include <ATen/ops/full.h>

#include <algorithm>

#include "cohort/core/bytes/fields.h"
#include "cohort/transform/analysis/attributes.h"
#include "cohort/transform/analysis/feature_accumulator.h"
#include "cohort/transform/analysis/simple_analysis.h"

namespace cohort::internal {
namespace {

// The sum of one feature: of integers modulo 2^64, of floating point numbers exact.
class SumFeature {
 public:
  template <class T>
  void add(const T* values, int64_t count, int64_t stride) {
    if constexpr (std::is_integral_v<T>) {
      for (int64_t i = 0; i < count; ++i)
        whole_ += static_cast<uint64_t>(int64_t{values[i * stride]});
    } else {
      for (int64_t begin = 0; begin < count; begin += ExactSum::kMaxAdditions) {
        const int64_t n = std::min(ExactSum::kMaxAdditions, count - begin);
        add_block(values + begin * stride, n, stride);
      }
    }
  }
  void merge(const SumFeature& other) {
    whole_ += other.whole_;
    sum_.add(other.sum_);
    infinite_ += other.infinite_;
  }

  std::string saved() const { return encode_fields(Saved{whole_, sum_.saved(), infinite_}); }
  void add_saved(std::string_view bytes, std::string_view what) {
    const auto saved = decode_fields<Saved>(bytes, what);
    whole_ += saved.whole;
    sum_.add_saved(saved.sum, what);
    infinite_ += saved.infinite;
  }

  int64_t whole() const { return static_cast<int64_t>(whole_); }
  double rounded(const FloatForm& form) const {
    return is_finite(infinite_) ? sum_.rounded(form) : infinite_;
  }

 private:
  struct Saved {
    uint64_t whole = 0;
    std::string sum;
    double infinite = 0;
    friend void fields(auto& f, Saved& saved) {
      f(1, saved.whole);
      f(2, saved.sum);
      f(3, saved.infinite);
    }
  };

  template <class T>
  void add_block(const T* values, int64_t count, int64_t stride) {
    sum_.make_room(count);
    for (int64_t i = 0; i < count; ++i) {
      const T value = values[i * stride];
      if (!is_finite(value)) [[unlikely]] {
        infinite_ += value;
        continue;
      }
      const Parts parts = parts_of(value);
      if constexpr (sizeof(T) == 4) {
        sum_.add_small(parts.mantissa, parts.exponent);
      } else {
        sum_.add_scaled(parts.mantissa, parts.exponent);
      }
    }
  }

  uint64_t whole_ = 0;
  ExactSum sum_;
  double infinite_ = 0;  // the sum of what is not finite: an infinity or NaN, in whatever order
};

class SumAccumulator final : public FeatureAccumulator<SumFeature> {
 public:
  SumAccumulator(std::string name, const NumericOptions& options)
      : FeatureAccumulator(std::move(name), 1, options) {}

 private:
  AnalysisResult result() override {
    const DType dtype = form().dtype();
    if (!form().is_floating()) {
      return {{{"sum", form().result(of_features([](auto& f) { return f.whole(); }), int64)}}};
    }
    const FloatForm rounding = float_form(dtype);
    return {
        {{"sum", form().result(of_features([&](auto& f) { return f.rounded(rounding); }), dtype)}}};
  }
};

struct SavedSize {
  uint64_t count = 0;
  std::vector<int64_t> shape;
  bool knows_shape = false;
};
void fields(auto& f, SavedSize& saved) {
  f(1, saved.count);
  f(2, saved.shape);
  f(3, saved.knows_shape);
}

// How many values there are. Of strings, too, so that it reads no values.
class SizeAccumulator final : public Accumulator {
 public:
  SizeAccumulator(std::string name, const NumericOptions& options)
      : Accumulator(std::move(name), 1), reduced_(options.reduce_instance_dims) {}

 private:
  void add_columns(std::span<const ColumnBatch> columns) override {
    const ColumnBatch& column = columns[0];
    check_column(column);
    std::vector<int64_t> shape = column.values.sizes();
    if (reduced_) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      count_ += static_cast<uint64_t>(count);
      return;
    }
    shape.erase(shape.begin());
    join(shape);
    count_ += static_cast<uint64_t>(column.rows);
  }
  void check_column(const ColumnBatch& column) const {
    try {
      check_rows(column);
    } catch (const InvalidArgumentError& error) {
      fail(error.what());
    }
    if (!reduced_ && column.row_splits) {
      fail("ragged rows have no common shape; reduce their instance dimensions");
    }
  }
  void join(const std::vector<int64_t>& shape) {
    if (shape_ && *shape_ != shape) {
      fail(str("rows have shape ", shape_str(*shape_), " and ", shape_str(shape)));
    }
    shape_ = shape;
  }

  void merge_same(Accumulator& accumulator) override {
    auto& other = static_cast<SizeAccumulator&>(accumulator);
    if (other.shape_) join(*other.shape_);
    count_ += std::exchange(other.count_, 0);
  }
  std::unique_ptr<SavedPieces> payloads() override {
    return single_payload(encode_fields(
        SavedSize{count_, shape_.value_or(std::vector<int64_t>()), shape_.has_value()}));
  }
  void add_payload(std::string_view payload, std::string_view source) override {
    const auto saved = decode_fields<SavedSize>(payload, source);
    count_ += saved.count;
    if (!saved.knows_shape) return;
    if (!has_possible_features(saved.shape)) {
      throw DataLossError(str(source, ": has an impossible shape"));
    }
    if (shape_ && *shape_ != saved.shape) {
      throw DataLossError(str(source, ": has rows of another shape"));
    }
    shape_ = saved.shape;
  }
  AnalysisResult result() override {
    return {{{"size", at::full(shape_.value_or(std::vector<int64_t>()),
                               static_cast<int64_t>(count_), at::TensorOptions(int64))}}};
  }

  const bool reduced_;
  uint64_t count_ = 0;
  std::optional<std::vector<int64_t>> shape_;  // of a row
};

}  // namespace

AnalysisPtr sum_analysis(const NumericOptions& options) {
  return simple_analysis(
      {.kind = "sum", .attributes = attributes_of(options), .result_names = {"sum"}},
      [options](std::string name, const AnalysisContext&) {
        return std::make_unique<SumAccumulator>(std::move(name), options);
      });
}

AnalysisPtr size_analysis(const NumericOptions& options) {
  return simple_analysis(
      {.kind = "size",
       .attributes = attributes_of({.reduce_instance_dims = options.reduce_instance_dims}),
       .result_names = {"size"}},
      [options](std::string name, const AnalysisContext&) {
        return std::make_unique<SizeAccumulator>(std::move(name), options);
      });
}

}  // namespace cohort::internal
