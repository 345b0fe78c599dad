#include "cohort/data/files/parse_sequence_example.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/text.h"
#include "cohort/data/files/example_keys.h"
#include "cohort/data/files/padded_rows.h"
#include "cohort/data/iteration/row_specs.h"

namespace cohort::internal {
namespace {

using io::ExampleFeature;
using io::ExampleFeatures;
using io::FixedLenFeature;
using io::FixedLenSequenceFeature;
using io::RaggedFeature;
using io::SparseFeature;
using io::VarLenFeature;

Tensor int64s(const std::vector<int64_t>& values) {
  const Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, int64);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

// The steps of one key in all records.
struct Steps {
  std::vector<FeatureView> features;  // one record after another
  std::vector<int64_t> counts;        // of each record
};

// What the values of a step are parsed as.
ExampleFeature feature_of_step(const ExampleFeature& feature) {
  const auto* fixed = std::get_if<FixedLenSequenceFeature>(&feature);
  if (!fixed) return feature;
  if (fixed->dtype) return FixedLenFeature(fixed->shape, *fixed->dtype);
  return FixedLenFeature::strings(fixed->shape);
}

bool may_be_missing(const ExampleFeature& feature) {
  const auto* fixed = std::get_if<FixedLenSequenceFeature>(&feature);
  return !fixed || fixed->options.allow_missing;
}

bool has_lengths(const ExampleFeature& feature) {
  return !std::holds_alternative<RaggedFeature>(feature);
}

void check_kinds(const ExampleFeatures& context, const ExampleFeatures& sequences,
                 const char* what) {
  if (context.empty() && sequences.empty()) {
    throw InvalidArgumentError(
        str(what, ": there are neither context_features nor ", "sequence_features"));
  }
  for (const auto& [name, feature] : context) {
    if (!std::holds_alternative<FixedLenSequenceFeature>(feature) &&
        !std::holds_alternative<SparseFeature>(feature)) {
      continue;
    }
    throw InvalidArgumentError(str(what, ": context_features are FixedLenFeature, VarLenFeature ",
                                   "and RaggedFeature, but ", quoted(name), " is another"));
  }
  for (const auto& [name, feature] : sequences) {
    if (!std::holds_alternative<FixedLenFeature>(feature) &&
        !std::holds_alternative<SparseFeature>(feature)) {
      continue;
    }
    throw InvalidArgumentError(str(what, ": sequence_features are FixedLenSequenceFeature, ",
                                   "VarLenFeature and RaggedFeature, but ", quoted(name),
                                   " is another"));
  }
}

// The lists of all records that are asked for.
class ListParser {
 public:
  ListParser(const StringTensor& serialized, const ExampleFeatures& features)
      : serialized_(serialized),
        features_(features),
        keys_(features),
        lists_(keys_.size()),
        steps_(keys_.size()) {
    for (const auto& [name, feature] : features) {
      about_feature(name, [&, &feature = feature] {
        make_example_column(feature_of_step(feature), serialized, 0);  // or fail
        if (const auto* fixed = std::get_if<FixedLenSequenceFeature>(&feature)) padding_of(*fixed);
      });
    }
  }

  void add(std::string_view record) {
    std::fill(lists_.begin(), lists_.end(), std::nullopt);
    size_t place = 0;
    for_each_feature_list(record, [&](std::string_view name, std::string_view list) {
      const size_t key = keys_.find(name, place++);
      if (key != ExampleKeys::kNone) lists_[key] = list;
    });
    for (size_t key = 0; key < lists_.size(); ++key) {
      if (!lists_[key]) check_missing(key);
      std::vector<FeatureView>& features = steps_[key].features;
      const size_t before = features.size();
      if (lists_[key]) {
        for_each_step(*lists_[key], [&](const FeatureView& step) { features.push_back(step); });
      }
      steps_[key].counts.push_back(static_cast<int64_t>(features.size() - before));
    }
  }

  // The sequences, and the lengths of those that are filled up.
  std::pair<Structure, Structure> result(bool batched) {
    Structure::Dict sequences, lengths;
    for (size_t i = 0; i < features_.size(); ++i) {
      const auto& [name, feature] = features_[i];
      about_feature(name, [&, &name = name, &feature = feature] {
        const Steps& steps = steps_of(i);
        const Structure values = values_of(i, steps.features.size());
        sequences.emplace_back(name, batched ? in_records(feature, values, steps.counts) : values);
        if (has_lengths(feature)) lengths.emplace_back(name, int64s(steps.counts));
      });
    }
    return {dict(std::move(sequences)), dict(std::move(lengths))};
  }

 private:
  void check_missing(size_t key) const {
    for (const KeyUse& use : keys_.uses(key)) {
      const auto& [name, feature] = features_[use.feature];
      if (may_be_missing(feature)) continue;
      throw InvalidArgumentError(
          str("feature ", quoted(name), ": its list is missing, and allow_missing is false"));
    }
  }

  // The steps of the values. Errors: InvalidArgument (keys of partitions have others).
  const Steps& steps_of(size_t feature) const {
    const Steps* values = nullptr;
    for_each_slot(feature, [&](size_t slot, const Steps& steps) {
      if (slot == 0) values = &steps;
    });
    for_each_slot(feature, [&](size_t slot, const Steps& steps) {
      if (steps.counts == values->counts) return;
      const auto differs =
          std::mismatch(steps.counts.begin(), steps.counts.end(), values->counts.begin());
      throw InvalidArgumentError(
          str("has ", *differs.second, " steps of values in record ",
              differs.first - steps.counts.begin(), ", but ", *differs.first, " of ",
              quoted(example_keys(features_[feature].first, features_[feature].second)[slot])));
    });
    return *values;
  }

  // The values of all steps, as a batch of steps.
  Structure values_of(size_t feature, size_t count) const {
    const auto column = make_example_column(feature_of_step(features_[feature].second), serialized_,
                                            static_cast<int64_t>(count));
    for_each_slot(feature, [&](size_t slot, const Steps& steps) {
      for (size_t i = 0; i < steps.features.size(); ++i) {
        const auto step = static_cast<int64_t>(i);
        if (steps.features[i].kind() == FeatureKind::kNone) {
          column->set_missing(step, slot);
        } else {
          column->set(step, slot, steps.features[i]);
        }
      }
    });
    return column->result(/*batched=*/true);
  }

  template <class Visit>
  void for_each_slot(size_t feature, const Visit& visit) const {
    for (size_t key = 0; key < keys_.size(); ++key) {
      for (const KeyUse& use : keys_.uses(key)) {
        if (use.feature == feature) visit(use.slot, steps_[key]);
      }
    }
  }

  static Structure in_records(const ExampleFeature& feature, const Structure& values,
                              const std::vector<int64_t>& counts) {
    if (composite_kind(values) == Composite::kRagged) {
      return RaggedTensor::from_row_splits(RaggedTensor(values), splits_of(counts));
    }
    if (const auto* fixed = std::get_if<FixedLenSequenceFeature>(&feature)) {
      return pad_rows(values.leaf(), counts, padding_of(*fixed));
    }
    return values.map([&](const Leaf& leaf) { return pad_rows(leaf, counts, zero_like(leaf)); });
  }

  static Tensor splits_of(const std::vector<int64_t>& counts) {
    std::vector<int64_t> splits = {0};
    for (const int64_t count : counts) splits.push_back(splits.back() + count);
    return int64s(splits);
  }

  const StringTensor& serialized_;
  const ExampleFeatures& features_;
  ExampleKeys keys_;
  std::vector<std::optional<std::string_view>> lists_;  // of the record, one a key
  std::vector<Steps> steps_;                            // of all records, one a key
};

Structure parse(const StringTensor& serialized, const ExampleFeatures& context,
                const ExampleFeatures& sequences, const char* what) {
  check_kinds(context, sequences, what);
  const bool batched = serialized.dim() == 1;
  const Structure context_values = parse_features(serialized, context, what);
  try {
    ListParser parser(serialized, sequences);
    for (int64_t i = 0; i < serialized.numel(); ++i) {
      about_record(i, [&] { parser.add(serialized[i]); });
    }
    const auto [values, lengths] = parser.result(batched);
    return batched ? tuple(context_values, values, lengths) : tuple(context_values, values);
  } catch (const Error&) {
    rethrow_with_context(what);
  }
}

void check_rank(const StringTensor& serialized, int64_t rank, const char* what) {
  if (serialized.dim() == rank) return;
  throw InvalidArgumentError(str(what, ": takes ", rank == 0 ? "one record, shape []" : "a batch ",
                                 rank == 0 ? "" : "of records, shape [n]", ", but got shape ",
                                 shape_str(serialized.sizes())));
}

// What one record gives.
StructureSpec sequence_spec(const ExampleFeature& feature) {
  if (std::holds_alternative<FixedLenSequenceFeature>(feature)) return feature_spec(feature);
  return stacked_spec(feature_spec(feature), kUnknownDim);
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::io {

Structure parse_sequence_example(const StringTensor& serialized,
                                 const ExampleFeatures& context_features,
                                 const ExampleFeatures& sequence_features) {
  constexpr char kWhat[] = "parse_sequence_example";
  internal::check_rank(serialized, 1, kWhat);
  return internal::parse(serialized, context_features, sequence_features, kWhat);
}

Structure parse_single_sequence_example(const StringTensor& serialized,
                                        const ExampleFeatures& context_features,
                                        const ExampleFeatures& sequence_features) {
  constexpr char kWhat[] = "parse_single_sequence_example";
  internal::check_rank(serialized, 0, kWhat);
  return internal::parse(serialized, context_features, sequence_features, kWhat);
}

StructureSpec sequence_example_spec(const ExampleFeatures& context_features,
                                    const ExampleFeatures& sequence_features, bool batched) {
  internal::check_kinds(context_features, sequence_features, "sequence_example_spec");
  StructureSpec::Dict sequences, lengths;
  for (const auto& [name, feature] : sequence_features) {
    sequences.emplace_back(name, internal::sequence_spec(feature));
    if (internal::has_lengths(feature)) lengths.emplace_back(name, TensorSpec({}, int64));
  }
  std::vector<StructureSpec> members = {internal::features_spec(context_features),
                                        StructureSpec::make_dict(std::move(sequences))};
  if (!batched) return StructureSpec::make_tuple(std::move(members));
  members.push_back(StructureSpec::make_dict(std::move(lengths)));
  return internal::stacked_spec(StructureSpec::make_tuple(std::move(members)), kUnknownDim);
}

}  // namespace cohort::io
