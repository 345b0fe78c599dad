#include "cohort/data/files/example_columns.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/spec.h"

namespace cohort::internal {
namespace {

using io::FixedLenFeature;
using io::VarLenFeature;

// A batch's strings keep at most so many times their own bytes alive; else they are copied.
constexpr size_t kMostBatchRatio = 2;
constexpr uint64_t kMostPaddedBytes = uint64_t{1} << 30;

template <class Number>
constexpr FeatureKind kKind =
    std::is_same_v<Number, float> ? FeatureKind::kFloats : FeatureKind::kInts;

void check_kind(const FeatureView& feature, FeatureKind expected) {
  if (feature.kind() == expected) return;
  throw InvalidArgumentError(str("has ", feature_kind_name(feature.kind()), " values where ",
                                 feature_kind_name(expected), " values are expected"));
}

void check_count(size_t count, size_t expected, const std::vector<int64_t>& shape) {
  if (count == expected) return;
  throw InvalidArgumentError(
      str("has ", count, " values where the shape ", shape_str(shape), " needs ", expected));
}

[[noreturn]] void fail_missing() {
  throw InvalidArgumentError("is missing, and has no default value");
}

size_t checked_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) {
      throw InvalidArgumentError(str("cannot have the shape ", shape_str(shape)));
    }
  }
  return static_cast<size_t>(count);
}

void check_default(const FixedLenFeature& feature) {
  if (!feature.default_value) return;
  const Leaf& leaf = *feature.default_value;
  const bool fits = feature.dtype
                        ? leaf.is_tensor() && leaf.tensor().scalar_type() == *feature.dtype
                        : leaf.is_strings();
  if (fits && leaf.sizes() == feature.shape) return;
  throw InvalidArgumentError(
      str("has a default value of another dtype or shape: ", TensorSpec::of(leaf)));
}

std::vector<int64_t> result_shape(int64_t records, std::vector<int64_t> shape, bool batched) {
  if (batched) shape.insert(shape.begin(), records);
  return shape;
}

// The views' bytes are those of `serialized`, unless they come from elsewhere (`shares` false).
StringTensor make_strings(std::vector<std::string_view> values, std::vector<int64_t> shape,
                          const StringTensor& serialized, bool shares) {
  struct Memory {
    StringTensor serialized;
    std::vector<std::string_view> values;
  };
  size_t used = 0, kept = 0;
  for (const std::string_view value : values) used += value.size();
  for (int64_t i = 0; i < serialized.numel(); ++i) kept += serialized[i].size();
  if (!shares || used * kMostBatchRatio < kept) {
    const auto count = static_cast<int64_t>(values.size());
    return concat({StringTensor::over(nullptr, values.data(), {count})}).reshape(std::move(shape));
  }
  const auto memory = std::make_shared<Memory>(Memory{serialized, std::move(values)});
  return StringTensor::over(memory, memory->values.data(), std::move(shape));
}

size_t copy(const FeatureView& feature, int64_t* out, size_t most) {
  return feature.copy_ints(out, most);
}
size_t copy(const FeatureView& feature, float* out, size_t most) {
  return feature.copy_floats(out, most);
}

template <class Number>
class FixedNumbers final : public ExampleColumn {
 public:
  FixedNumbers(FixedLenFeature feature, int64_t records)
      : feature_(std::move(feature)),
        count_(checked_count(feature_.shape)),
        values_(at::empty(result_shape(records, feature_.shape, true), *feature_.dtype)) {
    if (feature_.default_value) default_ = feature_.default_value->tensor().contiguous();
  }

  void set(int64_t record, const FeatureView& feature) override {
    check_kind(feature, kKind<Number>);
    check_count(copy(feature, place(record), count_), count_, feature_.shape);
  }
  void set_missing(int64_t record) override {
    if (!default_.defined()) fail_missing();
    std::copy_n(default_.data_ptr<Number>(), count_, place(record));
  }
  Structure result(bool batched) override { return batched ? values_ : values_.select(0, 0); }

 private:
  Number* place(int64_t record) {
    return values_.data_ptr<Number>() + static_cast<size_t>(record) * count_;
  }

  const FixedLenFeature feature_;
  const size_t count_;
  Tensor values_;   // [records, shape...]
  Tensor default_;  // undefined: none
};

class FixedStrings final : public ExampleColumn {
 public:
  FixedStrings(FixedLenFeature feature, const StringTensor& serialized)
      : feature_(std::move(feature)),
        count_(checked_count(feature_.shape)),
        serialized_(serialized),
        values_(count_ * static_cast<size_t>(serialized.numel())) {}

  void set(int64_t record, const FeatureView& feature) override {
    check_kind(feature, FeatureKind::kBytes);
    size_t count = 0;
    feature.for_each_bytes([&](std::string_view value) {
      if (count < count_) values_[static_cast<size_t>(record) * count_ + count] = value;
      ++count;
    });
    check_count(count, count_, feature_.shape);
  }
  void set_missing(int64_t record) override {
    if (!feature_.default_value) fail_missing();
    std::copy_n(feature_.default_value->strings().data(), count_,
                values_.begin() + record * static_cast<int64_t>(count_));
    shares_ = false;
  }
  Structure result(bool batched) override {
    return make_strings(std::move(values_),
                        result_shape(serialized_.numel(), feature_.shape, batched), serialized_,
                        shares_);
  }

 private:
  const FixedLenFeature feature_;
  const size_t count_;
  const StringTensor serialized_;
  std::vector<std::string_view> values_;  // [records, shape...]
  bool shares_ = true;                    // all bytes are of `serialized`
};

// Any number of values: they are read when it is known how many there are.
class Varying : public ExampleColumn {
 public:
  Varying(FeatureKind kind, int64_t records)
      : kind_(kind),
        features_(static_cast<size_t>(records)),
        lengths_(at::zeros({records}, int64)) {}

  void set(int64_t record, const FeatureView& feature) override {
    check_kind(feature, kind_);
    features_[static_cast<size_t>(record)] = feature;
    lengths_.data_ptr<int64_t>()[record] = static_cast<int64_t>(feature.count());
  }
  void set_missing(int64_t) override {}
  Structure result(bool batched) override {
    const auto records = static_cast<int64_t>(features_.size());
    const auto* lengths = lengths_.data_ptr<int64_t>();
    const int64_t longest = records == 0 ? 0 : *std::max_element(lengths, lengths + records);
    const uint64_t value_bytes = kind_ == FeatureKind::kBytes ? sizeof(std::string_view) : 8;
    if (records > 0 && static_cast<uint64_t>(longest) >
                           kMostPaddedBytes / value_bytes / static_cast<uint64_t>(records)) {
      throw ResourceExhaustedError(str("has up to ", longest, " values in a batch of ", records,
                                       ": padded they would take more than ", kMostPaddedBytes,
                                       " bytes; parse smaller batches"));
    }
    return dict({{"values", values({records, longest}, batched)},
                 {"lengths", batched ? lengths_ : lengths_.select(0, 0)}});
  }

 protected:
  // The values: [records, longest], or [longest] of the only record.
  virtual Structure values(std::vector<int64_t> shape, bool batched) = 0;
  const std::vector<FeatureView>& features() const { return features_; }

 private:
  const FeatureKind kind_;
  std::vector<FeatureView> features_;  // kNone: missing
  const Tensor lengths_;
};

template <class Number>
class VaryingNumbers final : public Varying {
 public:
  VaryingNumbers(DType dtype, int64_t records) : Varying(kKind<Number>, records), dtype_(dtype) {}

 private:
  Structure values(std::vector<int64_t> shape, bool batched) override {
    const Tensor values = at::zeros(shape, dtype_);
    auto* row = values.data_ptr<Number>();
    for (const FeatureView& feature : features()) {
      if (feature.kind() != FeatureKind::kNone) {
        copy(feature, row, static_cast<size_t>(shape[1]));
      }
      row += shape[1];
    }
    return batched ? values : values.select(0, 0);
  }

  const DType dtype_;
};

class VaryingStrings final : public Varying {
 public:
  explicit VaryingStrings(const StringTensor& serialized)
      : Varying(FeatureKind::kBytes, serialized.numel()), serialized_(serialized) {}

 private:
  Structure values(std::vector<int64_t> shape, bool batched) override {
    std::vector<std::string_view> values(static_cast<size_t>(shape[0] * shape[1]));
    auto row = values.begin();
    for (const FeatureView& feature : features()) {
      auto place = row;
      feature.for_each_bytes([&](std::string_view value) { *place++ = value; });
      row += shape[1];
    }
    if (!batched) shape.erase(shape.begin());
    return make_strings(std::move(values), std::move(shape), serialized_, true);
  }

  const StringTensor serialized_;
};

std::unique_ptr<ExampleColumn> make(const FixedLenFeature& feature,
                                    const StringTensor& serialized) {
  check_default(feature);
  if (!feature.dtype) return std::make_unique<FixedStrings>(feature, serialized);
  if (*feature.dtype == int64) {
    return std::make_unique<FixedNumbers<int64_t>>(feature, serialized.numel());
  }
  if (*feature.dtype == float32) {
    return std::make_unique<FixedNumbers<float>>(feature, serialized.numel());
  }
  return nullptr;
}

std::unique_ptr<ExampleColumn> make(const VarLenFeature& feature, const StringTensor& serialized) {
  if (!feature.dtype) return std::make_unique<VaryingStrings>(serialized);
  if (*feature.dtype == int64) {
    return std::make_unique<VaryingNumbers<int64_t>>(int64, serialized.numel());
  }
  if (*feature.dtype == float32) {
    return std::make_unique<VaryingNumbers<float>>(float32, serialized.numel());
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<ExampleColumn> make_example_column(const io::ExampleFeature& feature,
                                                   const StringTensor& serialized) {
  return std::visit(
      [&](const auto& feature) {
        auto column = make(feature, serialized);
        if (column) return column;
        throw InvalidArgumentError(str("has the dtype ", dtype_name(*feature.dtype),
                                       "; tf.Example has int64, float32 and strings"));
      },
      feature);
}

}  // namespace cohort::internal
