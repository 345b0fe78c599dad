#include <ATen/ops/empty.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"
#include "cohort/data/files/example_columns.h"
#include "cohort/data/files/padded_rows.h"

namespace cohort::internal {
namespace {

using io::RaggedFeature;
using Partition = RaggedFeature::Partition;

bool is_uniform(const Partition& partition) {
  return std::holds_alternative<RaggedFeature::UniformRowLength>(partition);
}

[[noreturn]] void refuse(const std::string& key, const std::string& problem) {
  throw InvalidArgumentError(str("cannot be divided by ", quoted(key), ": ", problem));
}

// The lengths of rows that end at `ends`, beginning with 0. `count`: what is divided.
std::vector<int64_t> lengths_of_ends(const std::string& key, const std::vector<int64_t>& ends,
                                     int64_t count) {
  std::vector<int64_t> lengths;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    if (end < begin || end > count) {
      refuse(key, str("row ", lengths.size(), " of ", count, " values would be [", begin, ", ", end,
                      ")"));
    }
    lengths.push_back(end - begin);
    begin = end;
  }
  if (begin != count) refuse(key, str("the rows have ", begin, " of ", count, " values"));
  return lengths;
}

int64_t uniform_rows(int64_t count, int64_t length) {
  if (count % length == 0) return count / length;
  throw InvalidArgumentError(str("has ", count, " values, which are no rows of length ", length));
}

// How a partition whose key has `numbers` divides `count` values: the lengths of the rows.
struct RowLengthsOf {
  std::vector<int64_t> numbers;
  int64_t count = 0;

  std::vector<int64_t> operator()(const RaggedFeature::RowSplits& kind) const {
    if (numbers.empty() && count == 0) return {};  // as where the key is missing
    if (numbers.empty() || numbers[0] != 0) refuse(kind.key, "row_splits begin with 0");
    return lengths_of_ends(kind.key, {numbers.begin() + 1, numbers.end()}, count);
  }
  std::vector<int64_t> operator()(const RaggedFeature::RowLimits& kind) const {
    return lengths_of_ends(kind.key, numbers, count);
  }
  std::vector<int64_t> operator()(const RaggedFeature::RowStarts& kind) const {
    if (numbers.empty()) return lengths_of_ends(kind.key, {}, count);
    if (numbers[0] != 0) refuse(kind.key, "row_starts begin with 0");
    std::vector<int64_t> ends(numbers.begin() + 1, numbers.end());
    ends.push_back(count);
    return lengths_of_ends(kind.key, ends, count);
  }
  std::vector<int64_t> operator()(const RaggedFeature::RowLengths& kind) const {
    int64_t left = count;
    for (const int64_t length : numbers) {
      if (length < 0 || length > left) {
        refuse(kind.key, str("a row of length ", length, " where ", left, " values are left"));
      }
      left -= length;
    }
    if (left != 0) refuse(kind.key, str("the rows have ", count - left, " of ", count, " values"));
    return numbers;
  }
  std::vector<int64_t> operator()(const RaggedFeature::ValueRowIds& kind) const {
    if (static_cast<int64_t>(numbers.size()) != count) {
      refuse(kind.key, str("there are ", numbers.size(), " row ids of ", count, " values"));
    }
    int64_t last = 0;
    for (const int64_t row : numbers) {
      if (row < last) refuse(kind.key, str("row id ", row, " after ", last));
      last = row;
    }
    constexpr auto kMostRows = static_cast<int64_t>(kMostPaddedBytes / sizeof(int64_t));
    if (last >= kMostRows) {
      throw ResourceExhaustedError(str("has the row id ", last, " in ", quoted(kind.key),
                                       "; rows up to it would take more than ", kMostPaddedBytes,
                                       " bytes"));
    }
    std::vector<int64_t> lengths(numbers.empty() ? 0 : static_cast<size_t>(last) + 1);
    for (const int64_t row : numbers) ++lengths[static_cast<size_t>(row)];
    return lengths;
  }
  std::vector<int64_t> operator()(const RaggedFeature::UniformRowLength& kind) const {
    return std::vector<int64_t>(static_cast<size_t>(uniform_rows(count, kind.length)), kind.length);
  }
};

Tensor splits_of(const std::vector<int64_t>& lengths) {
  const Tensor splits = at::empty({static_cast<int64_t>(lengths.size()) + 1}, int64);
  auto* split = splits.data_ptr<int64_t>();
  split[0] = 0;
  for (size_t i = 0; i < lengths.size(); ++i) split[i + 1] = split[i] + lengths[i];
  return splits;
}

// Slot 0 holds the values, the others the keys of partitions, in their order.
class RaggedColumn final : public ExampleColumn {
 public:
  RaggedColumn(RaggedFeature feature, const StringTensor& serialized, int64_t records)
      : feature_(std::move(feature)),
        kind_(feature_kind_of(feature_.dtype)),
        serialized_(serialized),
        features_(feature_.options.partitions.size() + 1,
                  std::vector<FeatureView>(static_cast<size_t>(records))) {
    for (const Partition& partition : feature_.options.partitions) {
      const auto* uniform = std::get_if<RaggedFeature::UniformRowLength>(&partition);
      if (!uniform || uniform->length > 0) continue;
      throw InvalidArgumentError(
          str("has rows of length ", uniform->length, "; UniformRowLength is at least 1"));
    }
    levels_ = feature_.options.partitions;
    while (!levels_.empty() && is_uniform(levels_.back())) {
      inner_shape_.insert(inner_shape_.begin(),
                          std::get<RaggedFeature::UniformRowLength>(levels_.back()).length);
      levels_.pop_back();
    }
  }

  void set(int64_t record, size_t slot, const FeatureView& feature) override {
    check_feature_kind(feature, slot == 0 ? kind_ : FeatureKind::kInts);
    features_[slot][static_cast<size_t>(record)] = feature;
  }
  void set_missing(int64_t, size_t) override {}

  Structure result(bool batched) override {
    std::vector<std::vector<int64_t>> lengths(levels_.size() + 1);  // the outermost is the batch
    for (size_t record = 0; record < features_[0].size(); ++record) divide(record, lengths);
    const Leaf values = shaped_values();
    std::vector<Tensor> splits;
    for (size_t level = batched ? 0 : 1; level < lengths.size(); ++level) {
      splits.push_back(splits_of(lengths[level]));
    }
    if (splits.empty()) return Structure::make_dict({{kRaggedRow, values}});
    return RaggedTensor::from_nested_row_splits(values, splits);
  }

 private:
  // Adds the lengths of the record's rows to those of each level.
  void divide(size_t record, std::vector<std::vector<int64_t>>& lengths) const {
    const FeatureView& values = features_[0][record];
    auto count =
        values.kind() == FeatureKind::kNone ? int64_t{0} : static_cast<int64_t>(values.count());
    for (size_t d = inner_shape_.size(); d-- > 0;) count = uniform_rows(count, inner_shape_[d]);
    size_t slot = 1;
    for (const Partition& level : levels_) slot += is_uniform(level) ? 0 : 1;
    for (size_t level = levels_.size(); level-- > 0;) {
      std::vector<int64_t> numbers;
      if (!is_uniform(levels_[level])) numbers = read(features_[--slot][record]);
      const std::vector<int64_t> own =
          std::visit(RowLengthsOf{std::move(numbers), count}, levels_[level]);
      lengths[level + 1].insert(lengths[level + 1].end(), own.begin(), own.end());
      count = std::ssize(own);
    }
    lengths[0].push_back(count);
  }

  static std::vector<int64_t> read(const FeatureView& feature) {
    if (feature.kind() == FeatureKind::kNone) return {};
    std::vector<int64_t> numbers(feature.count());
    feature.copy_ints(numbers.data(), numbers.size());
    return numbers;
  }

  Leaf shaped_values() const {
    Leaf values = flat_values(features_[0], kind_, serialized_);
    if (inner_shape_.empty()) return values;
    int64_t row_values = 1;
    for (const int64_t size : inner_shape_) row_values *= size;
    std::vector<int64_t> shape = inner_shape_;
    shape.insert(shape.begin(), values.sizes()[0] / row_values);
    if (values.is_strings()) return values.strings().reshape(shape);
    return values.tensor().reshape(shape);
  }

  const RaggedFeature feature_;
  const FeatureKind kind_;
  const StringTensor serialized_;
  std::vector<std::vector<FeatureView>> features_;  // of each slot; kNone: missing
  std::vector<Partition> levels_;                   // those that make ragged dimensions
  std::vector<int64_t> inner_shape_;                // the dense dimensions of values
};

}  // namespace

std::unique_ptr<ExampleColumn> make_ragged_column(const RaggedFeature& feature,
                                                  const StringTensor& serialized, int64_t count) {
  return std::make_unique<RaggedColumn>(feature, serialized, count);
}

}  // namespace cohort::internal
