// The keys of a record that are asked for, and by which features.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/data/files/example_columns.h"
#include "cohort/data/files/example_features.h"

namespace cohort::internal {

// A feature that takes the values of a key.
struct KeyUse {
  size_t feature;
  size_t slot;
};

// The keys of features. Records mostly have the same keys in the same order, so what was found at a
// place is tried first. Thread safety: none.
class ExampleKeys {
 public:
  // Errors: InvalidArgument (a name twice).
  explicit ExampleKeys(const io::ExampleFeatures& features);

  size_t size() const { return uses_.size(); }
  const std::vector<KeyUse>& uses(size_t key) const { return uses_[key]; }
  // The number of the key at `place` of its record; kNone if it was not asked for.
  size_t find(std::string_view name, size_t place);

  static constexpr size_t kNone = static_cast<size_t>(-1);

 private:
  static constexpr size_t kMostTried = 1024;

  std::vector<std::string> names_;
  std::vector<std::vector<KeyUse>> uses_;  // of each key
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<size_t> tried_;
};

// What call() returns; an error names the feature.
template <class Call>
auto about_feature(const std::string& name, Call&& call) {
  try {
    return call();
  } catch (const Error&) {
    rethrow_with_context("feature " + quoted(name));
  }
}

// Likewise of a record.
template <class Call>
void about_record(int64_t number, Call&& call) {
  try {
    call();
  } catch (const Error&) {
    rethrow_with_context(str("record ", number));
  }
}

// The features of tf.Examples, or of the context of SequenceExamples, as parse_example returns
// them. `what` begins the errors' texts.
Structure parse_features(const StringTensor& serialized, const io::ExampleFeatures& features,
                         std::string_view what);

// What one record gives: as io::example_spec.
StructureSpec features_spec(const io::ExampleFeatures& features);
// The spec of one leaf; no dtype: strings.
TensorSpec feature_leaf_spec(const std::optional<DType>& dtype, std::vector<int64_t> shape);
// The spec of one feature of one record.
StructureSpec feature_spec(const io::ExampleFeature& feature);

}  // namespace cohort::internal
