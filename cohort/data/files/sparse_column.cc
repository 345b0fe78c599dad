#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "cohort/core/error.h"
#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/core/text.h"
#include "cohort/data/files/example_columns.h"

namespace cohort::internal {
namespace {

using io::SparseFeature;

void check_feature(const SparseFeature& feature, int64_t records) {
  if (feature.index_keys.empty() || feature.index_keys.size() != feature.size.size()) {
    throw InvalidArgumentError(str("has ", feature.index_keys.size(), " index keys, but the size ",
                                   shape_str(feature.size), "; each dimension has one of each"));
  }
  int64_t places = std::max<int64_t>(records, 1);
  for (const int64_t size : feature.size) {
    if (size > 0 && !__builtin_mul_overflow(places, size, &places)) continue;
    throw InvalidArgumentError(str("cannot have the size ", shape_str(feature.size)));
  }
}

// The entries of one record: indices[d][i] in dimension d, and the place of each in its list.
class Entries {
 public:
  Entries(const SparseFeature& feature, std::vector<std::vector<int64_t>> indices)
      : feature_(feature), indices_(std::move(indices)), order_(indices_[0].size()) {
    check_bounds();
    std::iota(order_.begin(), order_.end(), size_t{0});
    sort();
  }

  std::span<const size_t> order() const { return order_; }
  int64_t index(size_t dimension, size_t entry) const { return indices_[dimension][entry]; }

 private:
  void check_bounds() const {
    for (size_t d = 0; d < indices_.size(); ++d) {
      for (const int64_t index : indices_[d]) {
        if (index >= 0 && index < feature_.size[d]) continue;
        throw InvalidArgumentError(str("has the index ", index, " in ",
                                       quoted(feature_.index_keys[d]), ", outside of [0, ",
                                       feature_.size[d], ")"));
      }
    }
  }

  int compare(size_t a, size_t b) const {
    for (const auto& dimension : indices_) {
      if (dimension[a] != dimension[b]) return dimension[a] < dimension[b] ? -1 : 1;
    }
    return 0;
  }

  void sort() {
    const auto before = [&](size_t a, size_t b) { return compare(a, b) < 0; };
    if (!std::is_sorted(order_.begin(), order_.end(), before)) {
      if (feature_.options.already_sorted) {
        throw InvalidArgumentError("is already_sorted, but its indices do not ascend");
      }
      std::sort(order_.begin(), order_.end(), before);
    }
    for (size_t i = 1; i < order_.size(); ++i) {
      if (compare(order_[i - 1], order_[i]) != 0) continue;
      throw InvalidArgumentError(str("has two values at one place, index ", indices_[0][order_[i]],
                                     " in ", quoted(feature_.index_keys[0])));
    }
  }

  const SparseFeature& feature_;
  const std::vector<std::vector<int64_t>> indices_;
  std::vector<size_t> order_;
};

// Slot 0 holds the values, slot 1 + d the indices of dimension d.
template <class Number>
class SparseColumn final : public ExampleColumn {
 public:
  SparseColumn(SparseFeature feature, int64_t records)
      : feature_(std::move(feature)),
        kind_(feature_kind_of(feature_.dtype)),
        features_(feature_.index_keys.size() + 1,
                  std::vector<FeatureView>(static_cast<size_t>(records))) {
    check_feature(feature_, records);
  }

  void set(int64_t record, size_t slot, const FeatureView& feature) override {
    check_feature_kind(feature, slot == 0 ? kind_ : FeatureKind::kInts);
    features_[slot][static_cast<size_t>(record)] = feature;
  }
  void set_missing(int64_t, size_t) override {}

  Structure result(bool batched) override {
    std::vector<int64_t> indices;  // [n, rank]
    std::vector<Number> values;
    const size_t records = features_[0].size();
    for (size_t record = 0; record < records; ++record) {
      add_record(record, batched, indices, values);
    }
    const auto count = static_cast<int64_t>(values.size());
    std::vector<int64_t> shape = feature_.size;
    if (batched) shape.insert(shape.begin(), static_cast<int64_t>(records));
    const auto rank = static_cast<int64_t>(shape.size());
    const Tensor index_rows = at::empty({count, rank}, int64);
    std::copy(indices.begin(), indices.end(), index_rows.data_ptr<int64_t>());
    const Tensor all_values = at::empty({count}, feature_.dtype);
    std::copy(values.begin(), values.end(), all_values.data_ptr<Number>());
    const Tensor coo =
        at::_sparse_coo_tensor_unsafe(index_rows.t().contiguous(), all_values, shape);
    return sparse_structure(coo._coalesced_(true));  // in order, each place once
  }

 private:
  static size_t copy(const FeatureView& feature, std::vector<int64_t>& out) {
    return feature.copy_ints(out.data(), out.size());
  }
  static size_t copy(const FeatureView& feature, std::vector<float>& out) {
    return feature.copy_floats(out.data(), out.size());
  }
  template <class T>
  static std::vector<T> read(const FeatureView& feature) {
    std::vector<T> out(feature.kind() == FeatureKind::kNone ? 0 : feature.count());
    if (!out.empty()) copy(feature, out);
    return out;
  }

  void add_record(size_t record, bool batched, std::vector<int64_t>& indices,
                  std::vector<Number>& values) const {
    const auto own = read<Number>(features_[0][record]);
    std::vector<std::vector<int64_t>> own_indices;
    for (size_t d = 0; d < feature_.size.size(); ++d) {
      own_indices.push_back(read<int64_t>(features_[d + 1][record]));
      if (own_indices[d].size() == own.size()) continue;
      throw InvalidArgumentError(str("has ", own.size(), " values in ", quoted(feature_.value_key),
                                     " of record ", record, ", but ", own_indices[d].size(),
                                     " indices in ", quoted(feature_.index_keys[d])));
    }
    const Entries entries(feature_, std::move(own_indices));
    for (const size_t entry : entries.order()) {
      if (batched) indices.push_back(static_cast<int64_t>(record));
      for (size_t d = 0; d < feature_.size.size(); ++d) indices.push_back(entries.index(d, entry));
      values.push_back(own[entry]);
    }
  }

  const SparseFeature feature_;
  const FeatureKind kind_;
  std::vector<std::vector<FeatureView>> features_;  // of each slot; kNone: missing
};

}  // namespace

std::unique_ptr<ExampleColumn> make_sparse_column(const SparseFeature& feature, int64_t count) {
  if (feature_kind_of(feature.dtype) == FeatureKind::kInts) {
    return std::make_unique<SparseColumn<int64_t>>(feature, count);
  }
  return std::make_unique<SparseColumn<float>>(feature, count);
}

}  // namespace cohort::internal
