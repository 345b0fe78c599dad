// The values of one feature over the records of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cohort/core/structure/structure.h"
#include "cohort/data/files/example_features.h"
#include "cohort/data/records/example.h"

namespace cohort::internal {

// Errors of all calls: InvalidArgument, DataLoss; the text says what is wrong with the feature.
// Thread safety: none.
class ExampleColumn {
 public:
  virtual ~ExampleColumn() = default;

  // Record `record` has the feature, or has it not; the last call for a record counts.
  virtual void set(int64_t record, const FeatureView& feature) = 0;
  virtual void set_missing(int64_t record) = 0;
  // What the values of all records are, after one call for each.
  virtual Structure result(bool batched) = 0;
};

// `serialized`: the records, whose bytes string values may share. Errors: InvalidArgument (a dtype
// that tf.Example has not; a default that does not fit).
std::unique_ptr<ExampleColumn> make_example_column(const io::ExampleFeature& feature,
                                                   const StringTensor& serialized);

}  // namespace cohort::internal
