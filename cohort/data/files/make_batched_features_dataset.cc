#include "cohort/data/files/make_batched_features_dataset.h"

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"
#include "cohort/data/files/batched_files.h"
#include "cohort/data/files/parse_example.h"
#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/iteration/row_specs.h"

namespace cohort::internal {
namespace {

using data::Dataset;
using Options = data::experimental::MakeBatchedFeaturesDatasetOptions;

// A dict without the entry `label`, and that entry; the dict where there is no label.
template <class Tree>
Tree without_label(const Tree& features, const std::optional<std::string>& label) {
  if (!label) return features;
  typename Tree::Dict others;
  std::vector<Tree> both(2);
  for (const auto& [name, feature] : features.items()) {
    if (name == *label) {
      both[1] = feature;
    } else {
      others.emplace_back(name, feature);
    }
  }
  both[0] = Tree::make_dict(std::move(others));
  return Tree::make_tuple(std::move(both));
}

Dataset records_of(const Dataset& files, const Options& options) {
  const int64_t reads = options.reader_num_threads.value_or(1);
  if (!options.reader && (reads == 1 || !options.sloppy_ordering)) {
    data::RecordDatasetOptions args = options.reader_args;
    args.num_parallel_reads = reads;
    return data::TFRecordDataset(files, args);
  }
  return files.interleave(
      [reader = options.reader, args = options.reader_args](const StringTensor& file) -> Dataset {
        const std::string path(file.item());
        if (reader) return reader(path);
        return data::TFRecordDataset(path, args);
      },
      files_in_turn(reads, options.sloppy_ordering));
}

Dataset make_feature_batches(const data::Paths& file_pattern, int64_t batch_size,
                             const io::ExampleFeatures& features, const Options& options) {
  const auto& label = options.label_key;
  if (label && std::none_of(features.begin(), features.end(),
                            [&](const auto& feature) { return feature.first == *label; })) {
    throw InvalidArgumentError(str("label_key is ", quoted(*label), ", which is no feature"));
  }
  io::parse_example(StringTensor(), features);  // whose errors here are the features' own
  const Dataset files =
      Dataset::list_files(file_pattern, {.shuffle = options.shuffle, .seed = options.shuffle_seed});
  const Dataset records =
      batched(records_of(files, options), {.batch_size = batch_size,
                                           .drop_remainder = options.drop_final_batch,
                                           .num_epochs = options.num_epochs,
                                           .shuffle = options.shuffle,
                                           .shuffle_buffer_size = options.shuffle_buffer_size,
                                           .shuffle_seed = options.shuffle_seed});
  const bool equal = options.drop_final_batch || !options.num_epochs;
  const StructureSpec parsed =
      spec_with_rows(io::example_spec(features, true), equal ? batch_size : kUnknownDim);
  return records
      .map(
          [features, label](const StringTensor& serialized) {
            return without_label(io::parse_example(serialized, features), label);
          },
          {.num_parallel_calls = options.parser_num_threads.value_or(2),
           .output_spec = without_label(parsed, label)})
      .prefetch(options.prefetch_buffer_size.value_or(data::AUTOTUNE));
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data::experimental {

Dataset make_batched_features_dataset(const Paths& file_pattern, int64_t batch_size,
                                      const io::ExampleFeatures& features,
                                      const MakeBatchedFeaturesDatasetOptions& options) {
  try {
    return internal::make_feature_batches(file_pattern, batch_size, features, options);
  } catch (const Error&) {
    internal::rethrow_with_context("make_batched_features_dataset");
  }
}

}  // namespace cohort::data::experimental
