// The values of one feature over the records of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/data/files/example_features.h"
#include "cohort/data/records/example.h"

namespace cohort::internal {

// A feature is made of the values of one key of a record or of several, its slots.
// Errors of all calls: InvalidArgument, DataLoss, ResourceExhausted; the text says what is wrong
// with the feature. Thread safety: none.
class ExampleColumn {
 public:
  virtual ~ExampleColumn() = default;

  // Record `record` has the slot's key, or has it not; the last call for a record counts.
  virtual void set(int64_t record, size_t slot, const FeatureView& feature) = 0;
  virtual void set_missing(int64_t record, size_t slot) = 0;
  // What the values of all records are, after one call for each record and slot.
  virtual Structure result(bool batched) = 0;
};

// The keys of a feature of this name, one a slot.
std::vector<std::string> example_keys(const std::string& name, const io::ExampleFeature& feature);

// A column of `count` records. `serialized`: what they lie in, whose bytes string values may share.
// Errors: InvalidArgument (a dtype that tf.Example has not; a default that does not fit; an option
// that is wrong).
std::unique_ptr<ExampleColumn> make_example_column(const io::ExampleFeature& feature,
                                                   const StringTensor& serialized, int64_t count);
std::unique_ptr<ExampleColumn> make_sparse_column(const io::SparseFeature& feature, int64_t count);
std::unique_ptr<ExampleColumn> make_ragged_column(const io::RaggedFeature& feature,
                                                  const StringTensor& serialized, int64_t count);

// Errors: InvalidArgument (it has values of another kind).
void check_feature_kind(const FeatureView& feature, FeatureKind expected);

// The kind of values of a dtype; nothing: strings. Errors: InvalidArgument (tf.Example has none).
FeatureKind feature_kind_of(const std::optional<DType>& dtype);

// The values of all records, one record after another: [n].
// `features` of another kind than kNone are of this kind.
Leaf flat_values(const std::vector<FeatureView>& features, FeatureKind kind,
                 const StringTensor& serialized);

// The views as a tensor. Their bytes are those of `serialized`, unless they come from elsewhere
// (`shares` false).
StringTensor make_strings(std::vector<std::string_view> values, std::vector<int64_t> shape,
                          const StringTensor& serialized, bool shares);

}  // namespace cohort::internal
