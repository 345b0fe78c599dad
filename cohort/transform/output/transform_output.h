// What transform::analyze_dataset has written: the function with its statistics, ready to be
// applied in training, evaluation and serving.
//
//   const transform::TFTransformOutput output(directory);
//   auto layer = output.transform_features_layer();
//   dataset = dataset.map(layer, {.num_parallel_calls = data::AUTOTUNE});
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/files/example_features.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/saving/models.h"
#include "cohort/transform/graph/column.h"

namespace cohort {
namespace internal {
class AppliedTransform;
}

namespace transform {

struct TransformFeaturesLayerOptions {
  std::string name = "";
};

// A handle: copies name the same transform. Vocabularies are read when they are first needed, once
// for all copies, layers and replicas.
// Thread safety: any thread.
class COHORT_API TFTransformOutput {
 public:
  // Errors: NotFound (no transform there), DataLoss (it is damaged: names the file),
  // InvalidArgument (written by a later Cohort), NotFound and FailedPrecondition (functions that it
  // uses, see register_function).
  explicit TFTransformOutput(const std::string& directory);
  // Refuses a transform that another function than this one was analysed for.
  // Errors: as above; FailedPrecondition (says what differs first), what the function throws.
  TFTransformOutput(const std::string& directory, const PreprocessingFunction& function);

  // Applies the transform to batches: from a dict of raw columns to a dict of outputs. It has no
  // weights. For datasets' map, steps, and models whose inputs are the raw columns. Columns that
  // are missing leave out the outputs that need them: the label, in serving.
  // Errors of its calls: InvalidArgument (a column that was not analysed, or of another type;
  // columns that suffice for no output; what operations say of values), DataLoss (a vocabulary's
  // file was changed).
  keras::layers::LayerHandle transform_features_layer(
      const TransformFeaturesLayerOptions& options = {}) const;
  // The same, of one batch.
  Structure transform_raw_features(const Structure& raw_features) const;

  // The path of a vocabulary's text file, a token a line. Errors: NotFound (names those that there
  // are).
  std::string vocabulary_file_by_name(std::string_view name) const;
  // The number of its lines.
  int64_t vocabulary_size_by_name(std::string_view name) const;
  StringTensor vocabulary_by_name(std::string_view name) const;
  // One more than the greatest number in an output of bucketize, apply_buckets, hash_strings or
  // apply_vocabulary. Errors: NotFound (no such output), InvalidArgument (an output of something
  // else).
  int64_t num_buckets_for_transformed_feature(std::string_view name) const;
  // What keep_statistic has kept. Errors: NotFound (names those that there are).
  Leaf statistic(std::string_view name) const;

  // How outputs and raw columns are read from tf.Example records. Dtypes that these lack are
  // widened to int64 and float32.
  io::ExampleFeatures transformed_feature_spec() const;
  io::ExampleFeatures raw_feature_spec() const;

  const std::string& directory() const;
  int64_t num_rows() const;  // that were analysed

 private:
  internal::Handle<const internal::AppliedTransform, "TFTransformOutput"> transform_;
};

// How models with a transform's layer are read:
//   load_model(path, {.custom_objects = transform::custom_objects()})
// A saved model names the directory of the transform, and does not hold it. Reading one is an error
// if another transform is there now.
COHORT_API keras::models::CustomObjects custom_objects();

}  // namespace transform
}  // namespace cohort
