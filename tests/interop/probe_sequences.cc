// Records and batches of values that differ in number: SequenceExamples, ragged and sparse features.
#include <cohort/core/error.h>
#include <cohort/core/structure/composite.h>
#include <cohort/core/structure/ragged_tensor.h>
#include <cohort/core/structure/sparse_tensor.h>
#include <cohort/data/dataset.h>
#include <cohort/data/files/make_batched_features_dataset.h>
#include <cohort/data/files/parse_example.h>
#include <cohort/data/files/parse_sequence_example.h>
#include <cohort/data/records/example_builder.h>

#include <string>
#include <vector>

#include "hex.h"
#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

using io::RaggedFeature;

Json leaf_json(const Leaf& leaf) {
  if (leaf.is_tensor()) return json_of(leaf.tensor().contiguous());
  Json json = {{"dtype", "bytes"}, {"shape", leaf.sizes()}, {"values", Json::array()}};
  for (const std::string& value : leaf.strings().to_vector()) {
    json["values"].push_back(hex_of(value));
  }
  return json;
}

// A RaggedTensor is {"ragged": values, "splits": [TENSOR]}, a sparse one {"sparse": values,
// "indices", "dense_shape"}.
Json any_json(const Structure& structure) {
  if (internal::composite_kind(structure) == internal::Composite::kRagged) {
    const RaggedTensor ragged = structure;
    Json json = {{"ragged", leaf_json(ragged.flat_values())}, {"splits", Json::array()}};
    for (const Tensor& splits : ragged.nested_row_splits())
      json["splits"].push_back(json_of(splits));
    return json;
  }
  if (internal::composite_kind(structure) == internal::Composite::kSparse) {
    const SparseTensor sparse = structure;
    return {{"sparse", json_of(sparse.values())},
            {"indices", json_of(sparse.indices())},
            {"dense_shape", sparse.dense_shape()}};
  }
  if (internal::holds_leaf(structure)) return leaf_json(structure.leaf());
  Json json = structure.is_dict() ? Json::object() : Json::array();
  if (structure.is_tuple()) {
    for (const Structure& member : structure.members()) json.push_back(any_json(member));
    return json;
  }
  for (const auto& [key, member] : structure.items()) json[key] = any_json(member);
  return json;
}

RaggedFeature::Partition partition_of(const Json& json) {
  const std::string kind = json.at("kind");
  if (kind == "UniformRowLength") {
    return RaggedFeature::UniformRowLength{json.at("length").get<int64_t>()};
  }
  const std::string key = json.at("key");
  if (kind == "RowSplits") return RaggedFeature::RowSplits{key};
  if (kind == "RowLengths") return RaggedFeature::RowLengths{key};
  if (kind == "RowStarts") return RaggedFeature::RowStarts{key};
  if (kind == "RowLimits") return RaggedFeature::RowLimits{key};
  return RaggedFeature::ValueRowIds{key};
}

io::ExampleFeature ragged_feature_of(const Json& json, const std::optional<DType>& dtype) {
  io::RaggedFeatureOptions options{.value_key = json.value("value_key", "")};
  for (const Json& partition : json.value("partitions", Json::array())) {
    options.partitions.push_back(partition_of(partition));
  }
  return dtype ? RaggedFeature(*dtype, options) : RaggedFeature::strings(options);
}

io::ExampleFeature sequence_feature_of(const Json& json, const std::optional<DType>& dtype) {
  const auto shape = json.at("shape").get<std::vector<int64_t>>();
  io::FixedLenSequenceFeatureOptions options{.allow_missing = json.value("allow_missing", false)};
  if (json.contains("default")) options.default_value = tensor_of(json.at("default"));
  if (!dtype) return io::FixedLenSequenceFeature::strings(shape, options);
  return io::FixedLenSequenceFeature(shape, *dtype, options);
}

io::ExampleFeature any_feature_of(const Json& json) {
  const std::string kind = json.at("kind"), dtype_name = json.at("dtype");
  std::optional<DType> dtype;
  if (dtype_name != "bytes") dtype = dtype_name == "int64" ? int64 : float32;
  if (kind == "ragged") return ragged_feature_of(json, dtype);
  if (kind == "sequence") return sequence_feature_of(json, dtype);
  if (kind == "sparse") {
    return io::SparseFeature(json.at("index_keys").get<std::vector<std::string>>(),
                             json.at("value_key").get<std::string>(), *dtype,
                             json.at("size").get<std::vector<int64_t>>());
  }
  if (kind == "var_len") {
    return dtype ? io::VarLenFeature(*dtype) : io::VarLenFeature::strings();
  }
  const auto shape = json.at("shape").get<std::vector<int64_t>>();
  return dtype ? io::FixedLenFeature(shape, *dtype) : io::FixedLenFeature::strings(shape);
}

io::ExampleFeatures features_of(const Json& json) {
  io::ExampleFeatures features;
  for (const auto& [name, feature] : json.items()) {
    features.emplace_back(name, any_feature_of(feature));
  }
  return features;
}

StringTensor records_of(const Json& request) {
  std::vector<std::string> records;
  for (const Json& record : request.at("records"))
    records.push_back(bytes_of(record.get<std::string>()));
  if (request.value("single", false)) return StringTensor::scalar(records.at(0));
  return StringTensor(records);
}

template <class Call>
Json answer_of(const Call& call) {
  try {
    return {{"parsed", call()}, {"error", nullptr}};
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace

Json parse_records(const Json& request) {
  return answer_of([&] {
    const StringTensor records = records_of(request);
    if (request.contains("features")) {
      return any_json(io::parse_example(records, features_of(request.at("features"))));
    }
    const io::ExampleFeatures context = features_of(request.at("context"));
    const io::ExampleFeatures sequences = features_of(request.at("sequences"));
    return any_json(request.value("single", false)
                        ? io::parse_single_sequence_example(records, context, sequences)
                        : io::parse_sequence_example(records, context, sequences));
  });
}

Json build_sequence_examples(const Json& request) {
  Json built = Json::array();
  for (const Json& lists : request.at("examples")) {
    io::SequenceExampleBuilder example;
    for (const auto& [name, values] : lists.at("context").items()) {
      example.context().add_ints(name, values.get<std::vector<int64_t>>());
    }
    for (const auto& [name, steps] : lists.at("lists").items()) {
      example.add_list(name);
      for (const Json& step : steps) example.add_step_ints(name, step.get<std::vector<int64_t>>());
    }
    built.push_back(hex_of(example.serialize()));
  }
  return {{"examples", built}};
}

Json batch_sequences(const Json& request) {
  return answer_of([&] {
    std::vector<Structure> rows;
    for (const Json& row : request.at("rows")) rows.push_back(tensor_of(row));
    const data::Dataset batches = data::Dataset::from_list(rows).sparse_batch(
        request.at("batch_size").get<int64_t>(),
        request.at("row_shape").get<std::vector<int64_t>>());
    Json all = Json::array();
    for (const Structure& batch : batches) all.push_back(any_json(batch));
    return all;
  });
}

Json sample_by_weights(const Json& request) {
  return answer_of([&] {
    std::vector<data::Dataset> datasets;
    for (const Json& range : request.at("ranges")) {
      datasets.push_back(
          data::Dataset::range(range.at(0).get<int64_t>(), range.at(1).get<int64_t>()));
    }
    const auto weights = data::Dataset::from_tensor_slices(tensor_of(request.at("weights")));
    Json all = Json::array();
    for (const Structure& element : data::Dataset::sample_from_datasets(
             datasets, weights,
             {.seed = 1, .stop_on_empty_dataset = request.at("stop").get<bool>()})) {
      all.push_back(element.tensor().item<int64_t>());
    }
    return all;
  });
}

Json batch_features(const Json& request) {
  return answer_of([&] {
    Json all = Json::array();
    for (const Structure& batch : data::experimental::make_batched_features_dataset(
             request.at("path").get<std::string>(), request.at("batch_size").get<int64_t>(),
             features_of(request.at("features")), {.num_epochs = 1, .shuffle = false})) {
      all.push_back(any_json(batch));
    }
    return all;
  });
}

}  // namespace cohort::interop
