#include "cohort/data/files/parse_example.h"

#include <unordered_map>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/data/files/example_columns.h"

namespace cohort::io {
namespace {

using internal::quoted;
using internal::str;

// The indices of the features that are asked for. Records mostly have the same features in the same
// order, so what was found at a place is tried first.
class FeatureIndex {
 public:
  explicit FeatureIndex(const ExampleFeatures& features) : features_(features) {
    for (size_t i = 0; i < features.size(); ++i) {
      if (index_.emplace(features[i].first, i).second) continue;
      throw InvalidArgumentError(
          str("parse_example: the feature ", quoted(features[i].first), " is asked for twice"));
    }
  }

  // The number of the feature at `place` of its record; kNone if it was not asked for.
  size_t find(std::string_view name, size_t place) {
    if (place < tried_.size() && tried_[place] != kNone && features_[tried_[place]].first == name) {
      return tried_[place];
    }
    const auto found = index_.find(name);
    const size_t index = found == index_.end() ? kNone : found->second;
    if (place < kMostTried) {
      if (place >= tried_.size()) tried_.resize(place + 1, kNone);
      tried_[place] = index;
    }
    return index;
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);

 private:
  static constexpr size_t kMostTried = 1024;

  const ExampleFeatures& features_;
  std::unordered_map<std::string_view, size_t> index_;
  std::vector<size_t> tried_;
};

using Columns = std::vector<std::unique_ptr<internal::ExampleColumn>>;

template <class Call>
auto about_feature(const std::string& name, Call&& call) {
  try {
    return call();
  } catch (const Error&) {
    internal::rethrow_with_context("feature " + quoted(name));
  }
}

void parse_record(std::string_view record, int64_t number, const ExampleFeatures& features,
                  FeatureIndex& index, std::vector<int64_t>& last_record, Columns& columns) {
  size_t place = 0;
  internal::for_each_feature(
      record, [&](std::string_view name, const internal::FeatureView& feature) {
        const size_t i = index.find(name, place++);
        if (i == FeatureIndex::kNone || feature.kind() == internal::FeatureKind::kNone) return;
        about_feature(features[i].first, [&] { columns[i]->set(number, feature); });
        last_record[i] = number;
      });
  for (size_t i = 0; i < columns.size(); ++i) {
    if (last_record[i] == number) continue;
    about_feature(features[i].first, [&] { columns[i]->set_missing(number); });
  }
}

TensorSpec leaf_spec(const std::optional<DType>& dtype, std::vector<int64_t> shape) {
  return dtype ? TensorSpec(std::move(shape), *dtype) : TensorSpec::strings(std::move(shape));
}

StructureSpec spec_of(const FixedLenFeature& feature) {
  return leaf_spec(feature.dtype, feature.shape);
}
StructureSpec spec_of(const VarLenFeature& feature) {
  return StructureSpec::make_dict(
      {{"values", leaf_spec(feature.dtype, {kUnknownDim})}, {"lengths", leaf_spec(int64, {})}});
}

}  // namespace

Structure parse_example(const StringTensor& serialized, const ExampleFeatures& features) {
  if (serialized.dim() > 1) {
    throw InvalidArgumentError(
        str("parse_example: takes one record or a batch of them, shape [] or [n], but got shape ",
            internal::shape_str(serialized.sizes())));
  }
  FeatureIndex index(features);
  Columns columns;
  for (const auto& [name, feature] : features) {
    about_feature(name, [&, &feature = feature] {
      columns.push_back(internal::make_example_column(feature, serialized));
    });
  }
  std::vector<int64_t> last_record(features.size(), -1);
  for (int64_t i = 0; i < serialized.numel(); ++i) {
    try {
      parse_record(serialized[i], i, features, index, last_record, columns);
    } catch (const Error&) {
      internal::rethrow_with_context(str("parse_example: record ", i));
    }
  }
  Structure::Dict result;
  for (size_t i = 0; i < columns.size(); ++i) {
    about_feature(features[i].first, [&] {
      result.emplace_back(features[i].first, columns[i]->result(serialized.dim() == 1));
    });
  }
  return dict(std::move(result));
}

StructureSpec example_spec(const ExampleFeatures& features, bool batched) {
  StructureSpec::Dict members;
  for (const auto& [name, feature] : features) {
    StructureSpec spec = std::visit([](const auto& feature) { return spec_of(feature); }, feature);
    members.emplace_back(name, std::move(spec));
  }
  const StructureSpec spec = StructureSpec::make_dict(std::move(members));
  if (!batched) return spec;
  return spec.map([](const TensorSpec& leaf) { return leaf.with_leading_dim(kUnknownDim); });
}

}  // namespace cohort::io
