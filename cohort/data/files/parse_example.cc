#include "cohort/data/files/parse_example.h"

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/text.h"
#include "cohort/data/files/example_columns.h"
#include "cohort/data/files/example_keys.h"
#include "cohort/data/iteration/row_specs.h"

namespace cohort::internal {
namespace {

using io::ExampleFeatures;
using io::FixedLenFeature;
using io::FixedLenSequenceFeature;
using io::RaggedFeature;
using io::SparseFeature;
using io::VarLenFeature;

class RecordParser {
 public:
  RecordParser(const StringTensor& serialized, const ExampleFeatures& features)
      : features_(features), keys_(features), last_record_(keys_.size(), -1) {
    for (const auto& [name, feature] : features) {
      about_feature(name, [&, &feature = feature] {
        columns_.push_back(make_example_column(feature, serialized, serialized.numel()));
      });
    }
  }

  void add(std::string_view record, int64_t number) {
    size_t place = 0;
    for_each_feature(record, [&](std::string_view name, const FeatureView& feature) {
      const size_t key = keys_.find(name, place++);
      if (key == ExampleKeys::kNone || feature.kind() == FeatureKind::kNone) return;
      for_each_use(key,
                   [&](ExampleColumn& column, size_t slot) { column.set(number, slot, feature); });
      last_record_[key] = number;
    });
    for (size_t key = 0; key < keys_.size(); ++key) {
      if (last_record_[key] == number) continue;
      for_each_use(key,
                   [&](ExampleColumn& column, size_t slot) { column.set_missing(number, slot); });
    }
  }

  Structure result(bool batched) {
    Structure::Dict result;
    for (size_t i = 0; i < columns_.size(); ++i) {
      about_feature(features_[i].first,
                    [&] { result.emplace_back(features_[i].first, columns_[i]->result(batched)); });
    }
    return dict(std::move(result));
  }

 private:
  template <class Call>
  void for_each_use(size_t key, const Call& call) {
    for (const KeyUse& use : keys_.uses(key)) {
      about_feature(features_[use.feature].first, [&] { call(*columns_[use.feature], use.slot); });
    }
  }

  const ExampleFeatures& features_;
  ExampleKeys keys_;
  std::vector<std::unique_ptr<ExampleColumn>> columns_;
  std::vector<int64_t> last_record_;  // that had each key
};

StructureSpec spec_of(const FixedLenFeature& feature) {
  return feature_leaf_spec(feature.dtype, feature.shape);
}
StructureSpec spec_of(const VarLenFeature& feature) {
  return StructureSpec::make_dict({{"values", feature_leaf_spec(feature.dtype, {kUnknownDim})},
                                   {"lengths", feature_leaf_spec(int64, {})}});
}
StructureSpec spec_of(const FixedLenSequenceFeature& feature) {
  return feature_leaf_spec(feature.dtype, feature.shape).with_leading_dim(kUnknownDim);
}
StructureSpec spec_of(const SparseFeature& feature) {
  return StructureSpec::make_dict({{kSparse, TensorSpec(feature.size, feature.dtype)}});
}
StructureSpec spec_of(const RaggedFeature& feature) {
  std::vector<int64_t> shape = {kUnknownDim};
  auto levels = feature.options.partitions;
  while (!levels.empty()) {
    const auto* uniform = std::get_if<RaggedFeature::UniformRowLength>(&levels.back());
    if (!uniform) break;
    shape.insert(shape.begin() + 1, uniform->length);
    levels.pop_back();
  }
  StructureSpec spec =
      StructureSpec::make_dict({{kRaggedRow, feature_leaf_spec(feature.dtype, shape)}});
  for (size_t level = 0; level < levels.size(); ++level) spec = stacked_spec(spec, kUnknownDim);
  return spec;
}

}  // namespace

TensorSpec feature_leaf_spec(const std::optional<DType>& dtype, std::vector<int64_t> shape) {
  return dtype ? TensorSpec(std::move(shape), *dtype) : TensorSpec::strings(std::move(shape));
}

StructureSpec feature_spec(const io::ExampleFeature& feature) {
  return std::visit([](const auto& feature) { return spec_of(feature); }, feature);
}

StructureSpec features_spec(const ExampleFeatures& features) {
  StructureSpec::Dict members;
  for (const auto& [name, feature] : features) members.emplace_back(name, feature_spec(feature));
  return StructureSpec::make_dict(std::move(members));
}

Structure parse_features(const StringTensor& serialized, const ExampleFeatures& features,
                         std::string_view what) {
  if (serialized.dim() > 1) {
    throw InvalidArgumentError(
        str(what, ": takes one record or a batch of them, shape [] or [n], but got shape ",
            shape_str(serialized.sizes())));
  }
  try {
    RecordParser parser(serialized, features);
    for (int64_t i = 0; i < serialized.numel(); ++i) {
      about_record(i, [&] { parser.add(serialized[i], i); });
    }
    return parser.result(serialized.dim() == 1);
  } catch (const Error&) {
    rethrow_with_context(std::string(what));
  }
}

}  // namespace cohort::internal

namespace cohort::io {

Structure parse_example(const StringTensor& serialized, const ExampleFeatures& features) {
  return internal::parse_features(serialized, features, "parse_example");
}

StructureSpec example_spec(const ExampleFeatures& features, bool batched) {
  const StructureSpec spec = internal::features_spec(features);
  return batched ? internal::stacked_spec(spec, kUnknownDim) : spec;
}

}  // namespace cohort::io
