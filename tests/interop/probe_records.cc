#include <cohort/core/error.h>
#include <cohort/data/files/csv_dataset.h>
#include <cohort/data/files/make_batched_features_dataset.h>
#include <cohort/data/files/make_csv_dataset.h>
#include <cohort/data/files/parse_example.h>
#include <cohort/data/files/text_line_dataset.h>
#include <cohort/data/files/tfrecord_dataset.h>
#include <cohort/data/records/example_builder.h>
#include <cohort/data/records/tfrecord_writer.h>

#include <string>
#include <vector>

#include "hex.h"
#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

Json to_answer(const Leaf& leaf) {
  if (leaf.is_tensor()) return json_of(leaf.tensor());
  Json json = {{"dtype", "bytes"}, {"shape", leaf.sizes()}, {"values", Json::array()}};
  for (const std::string& value : leaf.strings().to_vector())
    json["values"].push_back(hex_of(value));
  return json;
}
Json to_answer(const Structure& structure) {
  if (structure.is_leaf()) return to_answer(structure.leaf());
  Json json;
  if (structure.is_dict()) {
    for (const auto& [key, member] : structure.items()) json[key] = to_answer(member);
  } else {
    for (const Structure& member : structure.members()) json.push_back(to_answer(member));
  }
  return json;
}

// The elements of make(), as far as they can be read.
template <class Make>
Json read_made(const Make& make) {
  Json answer = {{"elements", Json::array()}, {"error", nullptr}};
  try {
    const data::Dataset dataset = make();
    for (const Structure& element : dataset) answer["elements"].push_back(to_answer(element));
  } catch (const Error& error) {
    answer["error"] = code_name(error.code());
    answer["text"] = error.what();
  }
  return answer;
}

Json read_all(const data::Dataset& dataset) {
  return read_made([&] { return dataset; });
}

data::RecordDatasetOptions record_options(const Json& request) {
  data::RecordDatasetOptions options;
  options.compression_type = request.value("compression", "");
  if (request.contains("num_parallel_reads")) {
    options.num_parallel_reads = request.at("num_parallel_reads").get<int64_t>();
  }
  return options;
}

io::ExampleFeature feature_of(const Json& json) {
  const std::string dtype = json.at("dtype");
  const bool fixed = json.contains("shape");
  const auto shape = json.value("shape", std::vector<int64_t>());
  if (dtype == "bytes") {
    if (fixed) return io::FixedLenFeature::strings(shape);
    return io::VarLenFeature::strings();
  }
  const DType type = dtype == "int64" ? int64 : float32;
  if (!fixed) return io::VarLenFeature(type);
  if (!json.contains("default")) return io::FixedLenFeature(shape, type);
  return io::FixedLenFeature(shape, type, tensor_of(json.at("default")));
}

std::vector<data::CsvColumn> columns_of(const Json& json) {
  std::vector<data::CsvColumn> columns;
  for (const Json& column : json) {
    const std::string type = column.at("dtype");
    const bool required = !column.contains("default");
    const auto value = [&]<class T>(T) {
      return required ? std::optional<T>() : std::optional<T>(column.at("default").get<T>());
    };
    if (type == "int32") columns.push_back(data::CsvColumn::int32s(value(int32_t())));
    if (type == "int64") columns.push_back(data::CsvColumn::ints(value(int64_t())));
    if (type == "float32") columns.push_back(data::CsvColumn::floats(value(float())));
    if (type == "float64") columns.push_back(data::CsvColumn::doubles(value(double())));
    if (type == "string") columns.push_back(data::CsvColumn::strings(value(std::string())));
  }
  return columns;
}

template <class T>
std::optional<T> optional_of(const Json& request, const char* key) {
  if (!request.contains(key)) return std::nullopt;
  return request.at(key).get<T>();
}

data::Dataset csv_batches(const Json& request) {
  data::experimental::MakeCsvDatasetOptions options;
  options.column_names = request.value("column_names", std::vector<std::string>());
  options.column_defaults = columns_of(request.value("column_defaults", Json::array()));
  options.label_name = optional_of<std::string>(request, "label_name");
  for (const Json& key : request.value("select_columns", Json::array())) {
    if (key.is_string()) {
      options.select_columns.emplace_back(key.get<std::string>());
    } else {
      options.select_columns.emplace_back(key.get<int64_t>());
    }
  }
  options.field_delim = request.value("field_delim", ",").front();
  options.use_quote_delim = request.value("use_quote_delim", true);
  options.na_value = request.value("na_value", "");
  options.header = request.value("header", true);
  options.num_epochs = optional_of<int64_t>(request, "num_epochs");
  options.shuffle = request.value("shuffle", true);
  options.num_parallel_reads = optional_of<int64_t>(request, "num_parallel_reads");
  options.num_rows_for_inference = request.value("num_rows_for_inference", int64_t{100});
  options.compression_type = request.value("compression_type", "");
  options.ignore_errors = request.value("ignore_errors", false);
  return data::experimental::make_csv_dataset(request.at("paths").get<std::vector<std::string>>(),
                                              request.at("batch_size"), options);
}

data::Dataset feature_batches(const Json& request) {
  io::ExampleFeatures features;
  for (const auto& [name, feature] : request.at("features").items()) {
    features.emplace_back(name, feature_of(feature));
  }
  data::experimental::MakeBatchedFeaturesDatasetOptions options;
  options.label_key = optional_of<std::string>(request, "label_key");
  options.num_epochs = optional_of<int64_t>(request, "num_epochs");
  options.shuffle = request.value("shuffle", true);
  options.reader_num_threads = optional_of<int64_t>(request, "reader_num_threads");
  options.drop_final_batch = request.value("drop_final_batch", false);
  return data::experimental::make_batched_features_dataset(
      request.at("paths").get<std::vector<std::string>>(), request.at("batch_size"), features,
      options);
}

}  // namespace

Json write_records(const Json& request) {
  io::TFRecordWriter writer(request.at("path").get<std::string>(),
                            {.compression_type = request.value("compression", "")});
  for (const Json& record : request.at("records"))
    writer.write(bytes_of(record.get<std::string>()));
  writer.close();
  return Json::object();
}

Json read_records(const Json& request) {
  const std::vector<std::string> paths = request.at("paths");
  const std::string kind = request.at("kind");
  if (kind == "tfrecord") return read_all(data::TFRecordDataset(paths, record_options(request)));
  if (kind == "lines") return read_all(data::TextLineDataset(paths, record_options(request)));
  if (kind == "list") return read_all(data::Dataset::list_files(paths, {.shuffle = false}));
  if (kind == "csv_batches" || kind == "feature_batches") {
    return read_made([&] {
      const data::Dataset batches =
          kind == "csv_batches" ? csv_batches(request) : feature_batches(request);
      return batches.take(request.value("take", int64_t{-1}));
    });
  }
  data::CsvOptions options;
  options.header = request.value("header", false);
  options.select_cols = request.value("select_cols", std::vector<int64_t>());
  options.exclude_cols = request.value("exclude_cols", std::vector<int64_t>());
  options.na_value = request.value("na_value", "");
  options.use_quote_delim = request.value("use_quote_delim", true);
  options.field_delim = request.value("field_delim", ",").front();
  return read_all(data::CsvDataset(paths, columns_of(request.at("columns")), options));
}

Json build_examples(const Json& request) {
  Json answer = {{"examples", Json::array()}};
  for (const Json& features : request.at("examples")) {
    io::ExampleBuilder example;
    for (const auto& [name, feature] : features.items()) {
      const std::string dtype = feature.at("dtype");
      if (dtype == "int64") {
        example.add_ints(name, feature.at("values").get<std::vector<int64_t>>());
      } else if (dtype == "float32") {
        example.add_floats(name, feature.at("values").get<std::vector<float>>());
      } else {
        std::vector<std::string> values;
        for (const Json& value : feature.at("values"))
          values.push_back(bytes_of(value.get<std::string>()));
        example.add_bytes(name, std::vector<std::string_view>(values.begin(), values.end()));
      }
    }
    answer["examples"].push_back(hex_of(example.serialize()));
  }
  return answer;
}

Json parse_examples(const Json& request) {
  std::vector<std::string> serialized;
  for (const Json& example : request.at("examples"))
    serialized.push_back(bytes_of(example.get<std::string>()));
  io::ExampleFeatures features;
  for (const auto& [name, feature] : request.at("features").items()) {
    features.emplace_back(name, feature_of(feature));
  }
  try {
    return {{"parsed", to_answer(io::parse_example(StringTensor(serialized), features))},
            {"error", nullptr}};
  } catch (const Error& error) {
    return {{"error", code_name(error.code())}, {"text", error.what()}};
  }
}

}  // namespace cohort::interop
