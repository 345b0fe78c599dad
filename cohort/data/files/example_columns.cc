#include "cohort/data/files/example_columns.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/spec.h"
#include "cohort/data/files/padded_rows.h"

namespace cohort::internal {
namespace {

using io::FixedLenFeature;
using io::FixedLenSequenceFeature;
using io::RaggedFeature;
using io::SparseFeature;
using io::VarLenFeature;

// A batch's strings keep at most so many times their own bytes alive; else they are copied.
constexpr size_t kMostBatchRatio = 2;

template <class Number>
constexpr FeatureKind kKind =
    std::is_same_v<Number, float> ? FeatureKind::kFloats : FeatureKind::kInts;

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

  void set(int64_t record, size_t, const FeatureView& feature) override {
    check_feature_kind(feature, kKind<Number>);
    check_count(copy(feature, place(record), count_), count_, feature_.shape);
  }
  void set_missing(int64_t record, size_t) override {
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
  FixedStrings(FixedLenFeature feature, const StringTensor& serialized, int64_t records)
      : feature_(std::move(feature)),
        count_(checked_count(feature_.shape)),
        records_(records),
        serialized_(serialized),
        values_(count_ * static_cast<size_t>(records)) {}

  void set(int64_t record, size_t, const FeatureView& feature) override {
    check_feature_kind(feature, FeatureKind::kBytes);
    size_t count = 0;
    feature.for_each_bytes([&](std::string_view value) {
      if (count < count_) values_[static_cast<size_t>(record) * count_ + count] = value;
      ++count;
    });
    check_count(count, count_, feature_.shape);
  }
  void set_missing(int64_t record, size_t) override {
    if (!feature_.default_value) fail_missing();
    std::copy_n(feature_.default_value->strings().data(), count_,
                values_.begin() + record * static_cast<int64_t>(count_));
    shares_ = false;
  }
  Structure result(bool batched) override {
    return make_strings(std::move(values_), result_shape(records_, feature_.shape, batched),
                        serialized_, shares_);
  }

 private:
  const FixedLenFeature feature_;
  const size_t count_;
  const int64_t records_;
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

  void set(int64_t record, size_t, const FeatureView& feature) override {
    check_feature_kind(feature, kind_);
    features_[static_cast<size_t>(record)] = feature;
    lengths_.data_ptr<int64_t>()[record] = static_cast<int64_t>(feature.count());
  }
  void set_missing(int64_t, size_t) override {}
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
  VaryingStrings(const StringTensor& serialized, int64_t records)
      : Varying(FeatureKind::kBytes, records), serialized_(serialized) {}

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

// Rows of values, filled up to those of the record that has most.
class SequenceColumn final : public ExampleColumn {
 public:
  SequenceColumn(FixedLenSequenceFeature feature, const StringTensor& serialized, int64_t records)
      : feature_(std::move(feature)),
        kind_(feature_kind_of(feature_.dtype)),
        row_values_(static_cast<int64_t>(checked_count(feature_.shape))),
        padding_(padding_of(feature_)),
        serialized_(serialized),
        features_(static_cast<size_t>(records)),
        rows_(static_cast<size_t>(records)) {
    if (!feature_.options.allow_missing) {
      throw InvalidArgumentError("needs allow_missing: examples without values have no rows");
    }
    if (row_values_ == 0) {
      throw InvalidArgumentError(
          str("has rows of shape ", shape_str(feature_.shape), ", which have no values"));
    }
  }

  void set(int64_t record, size_t, const FeatureView& feature) override {
    check_feature_kind(feature, kind_);
    const auto count = static_cast<int64_t>(feature.count());
    if (count % row_values_ != 0) {
      throw InvalidArgumentError(
          str("has ", count, " values, which are no rows of shape ", shape_str(feature_.shape)));
    }
    features_[static_cast<size_t>(record)] = feature;
    rows_[static_cast<size_t>(record)] = count / row_values_;
  }
  void set_missing(int64_t, size_t) override {}
  Structure result(bool batched) override {
    Leaf values = flat_values(features_, kind_, serialized_);
    std::vector<int64_t> shape = feature_.shape;
    shape.insert(shape.begin(), values.sizes()[0] / row_values_);
    values = values.is_strings() ? Leaf(values.strings().reshape(shape))
                                 : Leaf(values.tensor().reshape(shape));
    return batched ? Structure(pad_rows(values, rows_, padding_)) : Structure(values);
  }

 private:
  const FixedLenSequenceFeature feature_;
  const FeatureKind kind_;
  const int64_t row_values_;
  const Leaf padding_;
  const StringTensor serialized_;
  std::vector<FeatureView> features_;  // kNone: missing
  std::vector<int64_t> rows_;
};

std::unique_ptr<ExampleColumn> make(const FixedLenFeature& feature, const StringTensor& serialized,
                                    int64_t count) {
  check_default(feature);
  switch (feature_kind_of(feature.dtype)) {
    case FeatureKind::kInts:
      return std::make_unique<FixedNumbers<int64_t>>(feature, count);
    case FeatureKind::kFloats:
      return std::make_unique<FixedNumbers<float>>(feature, count);
    default:
      return std::make_unique<FixedStrings>(feature, serialized, count);
  }
}

std::unique_ptr<ExampleColumn> make(const VarLenFeature& feature, const StringTensor& serialized,
                                    int64_t count) {
  switch (feature_kind_of(feature.dtype)) {
    case FeatureKind::kInts:
      return std::make_unique<VaryingNumbers<int64_t>>(int64, count);
    case FeatureKind::kFloats:
      return std::make_unique<VaryingNumbers<float>>(float32, count);
    default:
      return std::make_unique<VaryingStrings>(serialized, count);
  }
}

std::unique_ptr<ExampleColumn> make(const FixedLenSequenceFeature& feature,
                                    const StringTensor& serialized, int64_t count) {
  return std::make_unique<SequenceColumn>(feature, serialized, count);
}

std::unique_ptr<ExampleColumn> make(const SparseFeature& feature, const StringTensor&,
                                    int64_t count) {
  return make_sparse_column(feature, count);
}

std::unique_ptr<ExampleColumn> make(const RaggedFeature& feature, const StringTensor& serialized,
                                    int64_t count) {
  return make_ragged_column(feature, serialized, count);
}

template <class Number>
Tensor flat_numbers(const std::vector<FeatureView>& features, DType dtype) {
  size_t count = 0;
  for (const FeatureView& feature : features) count += feature.count();
  const Tensor values = at::empty({static_cast<int64_t>(count)}, dtype);
  auto* place = values.data_ptr<Number>();
  for (const FeatureView& feature : features) {
    if (feature.kind() == FeatureKind::kNone) continue;
    const size_t copied = copy(feature, place, count);
    place += copied;
    count -= copied;
  }
  return values;
}

}  // namespace

void check_feature_kind(const FeatureView& feature, FeatureKind expected) {
  if (feature.kind() == expected) return;
  throw InvalidArgumentError(str("has ", feature_kind_name(feature.kind()), " values where ",
                                 feature_kind_name(expected), " values are expected"));
}

FeatureKind feature_kind_of(const std::optional<DType>& dtype) {
  if (!dtype) return FeatureKind::kBytes;
  if (*dtype == int64) return FeatureKind::kInts;
  if (*dtype == float32) return FeatureKind::kFloats;
  throw InvalidArgumentError(
      str("has the dtype ", dtype_name(*dtype), "; tf.Example has int64, float32 and strings"));
}

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

Leaf flat_values(const std::vector<FeatureView>& features, FeatureKind kind,
                 const StringTensor& serialized) {
  if (kind == FeatureKind::kInts) return flat_numbers<int64_t>(features, int64);
  if (kind == FeatureKind::kFloats) return flat_numbers<float>(features, float32);
  std::vector<std::string_view> values;
  for (const FeatureView& feature : features) {
    if (feature.kind() == FeatureKind::kNone) continue;
    feature.for_each_bytes([&](std::string_view value) { values.push_back(value); });
  }
  const auto count = static_cast<int64_t>(values.size());
  return make_strings(std::move(values), {count}, serialized, true);
}

std::vector<std::string> example_keys(const std::string& name, const io::ExampleFeature& feature) {
  if (const auto* sparse = std::get_if<SparseFeature>(&feature)) {
    std::vector<std::string> keys = {sparse->value_key};
    keys.insert(keys.end(), sparse->index_keys.begin(), sparse->index_keys.end());
    return keys;
  }
  const auto* ragged = std::get_if<RaggedFeature>(&feature);
  if (!ragged) return {name};
  std::vector<std::string> keys = {ragged->options.value_key.empty() ? name
                                                                     : ragged->options.value_key};
  for (const RaggedFeature::Partition& partition : ragged->options.partitions) {
    std::visit(
        [&](const auto& kind) {
          if constexpr (requires { kind.key; }) keys.push_back(kind.key);
        },
        partition);
  }
  return keys;
}

std::unique_ptr<ExampleColumn> make_example_column(const io::ExampleFeature& feature,
                                                   const StringTensor& serialized, int64_t count) {
  return std::visit([&](const auto& feature) { return make(feature, serialized, count); }, feature);
}

}  // namespace cohort::internal
