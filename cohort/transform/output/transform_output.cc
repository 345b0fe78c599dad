#include "cohort/transform/output/transform_output.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/output/applied_transform.h"
#include "cohort/transform/output/transform_features_layer.h"

namespace cohort::transform {
namespace {

using internal::AppliedTransform;
using internal::quoted;
using internal::str;

int find_named(const std::vector<std::pair<std::string, int>>& list, std::string_view name,
               std::string_view what) {
  std::string names;
  for (const auto& [known, step] : list) {
    if (known == name) return step;
    names += (names.empty() ? "" : ", ") + quoted(known);
  }
  throw NotFoundError(str("the transform has no ", what, ' ', quoted(name),
                          "; there are: ", names.empty() ? "none" : names));
}

const internal::VocabularyTable& vocabulary_of(const AppliedTransform& transform,
                                               std::string_view name) {
  const int analysis = transform.graph().vocabulary(name);
  for (const auto& [result, value] : transform.values()[analysis]) {
    if (result == internal::kVocabularyResult) return *value.vocabulary;
  }
  throw InternalError(str("vocabulary ", quoted(name), " has no file"));
}

io::ExampleFeature feature_of(const internal::ColumnType& type) {
  const auto dtype = [&] {
    return at::isIntegralType(type.dtype.dtype(), /*includeBool=*/true) ? int64 : float32;
  };
  if (type.is_ragged()) {
    return type.is_string() ? io::VarLenFeature::strings() : io::VarLenFeature(dtype());
  }
  return type.is_string() ? io::FixedLenFeature::strings(type.shape)
                          : io::FixedLenFeature(type.shape, dtype());
}

}  // namespace

TFTransformOutput::TFTransformOutput(const std::string& directory)
    : transform_(std::make_shared<const AppliedTransform>(
          directory, internal::read_transform(internal::posix_file_system(), directory))) {}

TFTransformOutput::TFTransformOutput(const std::string& directory,
                                     const PreprocessingFunction& function)
    : TFTransformOutput(directory) {
  const internal::TransformGraph& analysed = transform_->graph();
  const auto difference =
      internal::graph_difference(internal::trace(function, analysed.columns), analysed);
  if (!difference.has_value()) return;
  throw FailedPreconditionError(
      str("the transform in ", quoted(directory),
          " was analysed for another preprocessing function: ", *difference, "; analyse again"));
}

keras::layers::LayerHandle TFTransformOutput::transform_features_layer(
    const TransformFeaturesLayerOptions& options) const {
  return internal::make_transform_features_layer(transform_.pointer(), options.name);
}

Structure TFTransformOutput::transform_raw_features(const Structure& raw_features) const {
  return transform_->apply(raw_features);
}

std::string TFTransformOutput::vocabulary_file_by_name(std::string_view name) const {
  return vocabulary_of(*transform_, name).file().path;
}

int64_t TFTransformOutput::vocabulary_size_by_name(std::string_view name) const {
  return vocabulary_of(*transform_, name).file().lines;
}

StringTensor TFTransformOutput::vocabulary_by_name(std::string_view name) const {
  return vocabulary_of(*transform_, name).table().keys().strings();
}

int64_t TFTransformOutput::num_buckets_for_transformed_feature(std::string_view name) const {
  const internal::TransformGraph& graph = transform_->graph();
  const auto& step = graph.steps[find_named(graph.outputs, name, "output")];
  const keras::Config& attributes = step.node->attributes;
  if (step.node->operation == "hash_strings") return attributes.get_int("hash_buckets");
  if (step.node->operation == "apply_buckets") {
    return transform_->statistic(step.inputs[1]).values.sizes().back() + 1;
  }
  if (step.node->operation == "apply_vocabulary") {
    return transform_->statistic(step.inputs[1]).vocabulary->file().lines +
           attributes.get_int("num_oov_buckets");
  }
  throw InvalidArgumentError(str(
      "output ", quoted(name), " has no number of buckets: it is made by ", step.node->operation));
}

Leaf TFTransformOutput::statistic(std::string_view name) const {
  return transform_->statistic(find_named(transform_->graph().statistics, name, "statistic"))
      .values;
}

io::ExampleFeatures TFTransformOutput::transformed_feature_spec() const {
  io::ExampleFeatures features;
  const internal::TransformGraph& graph = transform_->graph();
  for (const auto& [name, step] : graph.outputs) {
    features.emplace_back(name, feature_of(graph.steps[step].node->type));
  }
  return features;
}

io::ExampleFeatures TFTransformOutput::raw_feature_spec() const {
  io::ExampleFeatures features;
  for (const auto& [name, type] : transform_->graph().columns) {
    features.emplace_back(name, feature_of(type));
  }
  return features;
}

keras::models::CustomObjects custom_objects() {
  return {{"TransformFeaturesLayer", [](const keras::Config& config) {
             const std::string directory = config.get_string("directory");
             auto transform = std::make_shared<const AppliedTransform>(
                 directory, internal::read_transform(internal::posix_file_system(), directory));
             if (transform->checksum() != config.get_int("checksum")) {
               throw FailedPreconditionError(
                   str("the model was saved with another transform than the one that is in ",
                       quoted(directory), " now"));
             }
             return internal::make_transform_features_layer(std::move(transform), "");
           }}};
}

const std::string& TFTransformOutput::directory() const { return transform_->directory(); }
int64_t TFTransformOutput::num_rows() const { return transform_->rows(); }

}  // namespace cohort::transform
