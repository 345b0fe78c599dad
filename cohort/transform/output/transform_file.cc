#include "cohort/transform/output/transform_file.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/transform/graph/operations.h"

namespace cohort::internal {
namespace {

Json leaf_json(const Leaf& leaf) {
  Json values = Json::array();
  std::string dtype = "string";
  if (leaf.is_strings()) {
    for (int64_t i = 0; i < leaf.strings().numel(); ++i) {
      values.push_back(text_json(leaf.strings()[i]));
    }
  } else {
    const Tensor& tensor = leaf.tensor();
    dtype = dtype_name(tensor.scalar_type());
    if (at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true)) {
      const Tensor numbers = tensor.to(at::kLong).contiguous();
      for (int64_t i = 0; i < numbers.numel(); ++i)
        values.push_back(numbers.data_ptr<int64_t>()[i]);
    } else {
      const Tensor numbers = tensor.to(at::kDouble).contiguous();
      for (int64_t i = 0; i < numbers.numel(); ++i) values.push_back(numbers.data_ptr<double>()[i]);
    }
  }
  return {{"dtype", dtype}, {"shape", leaf.sizes()}, {"values", values}};
}

std::vector<int64_t> read_shape(const Json& json, size_t count, const std::string& where) {
  std::vector<int64_t> shape;
  uint64_t product = 1;
  for (const Json& size : member_of(json, "shape", where)) {
    shape.push_back(integer_of(size, where));
    if (shape.back() < 0 || (product *= static_cast<uint64_t>(shape.back())) > count) {
      throw InvalidArgumentError(str(where, ": its shape is not that of its values"));
    }
  }
  if (product != count) {
    throw InvalidArgumentError(str(where, ": its shape is not that of its values"));
  }
  return shape;
}

Leaf read_leaf(const Json& json, const std::string& where) {
  const std::string dtype = string_member(json, "dtype", where);
  const Json& values = member_of(json, "values", where);
  const std::vector<int64_t> shape = read_shape(json, values.size(), where);
  if (dtype == "string") {
    std::vector<std::string> texts;
    for (const Json& value : values) texts.push_back(text_of(value, where));
    return StringTensor(texts, shape);
  }
  const DType type = dtype_of_name(dtype);
  if (at::isIntegralType(type, /*includeBool=*/true)) {
    const Tensor numbers = at::empty(shape, at::kLong);
    int64_t* next = numbers.data_ptr<int64_t>();
    for (const Json& value : values) *next++ = integer_of(value, where);
    return numbers.to(type);
  }
  const Tensor numbers = at::empty(shape, at::kDouble);
  double* next = numbers.data_ptr<double>();
  for (const Json& value : values) {
    if (!value.is_number()) throw InvalidArgumentError(str(where, ": a value is no number"));
    *next++ = value.get<double>();
  }
  return numbers.to(type);
}

Json results_json(const TransformGraph& graph, const AnalysesRun& run) {
  Json results = Json::array();
  for (size_t i = 0; i < run.results.size(); ++i) {
    Json constants = Json::object();
    for (const auto& [name, leaf] : run.results[i].constants) constants[name] = leaf_json(leaf);
    Json json = {{"constants", constants}};
    if (const auto& file = run.results[i].file; file.has_value()) {
      json["file"] = {{"name", vocabulary_file_name(graph.analyses[i].vocabulary_name)},
                      {"bytes", file->bytes},
                      {"lines", file->lines},
                      {"crc32c", file->crc32c}};
    }
    results.push_back(std::move(json));
  }
  return results;
}

std::vector<std::pair<std::string, ColumnValue>> read_results(
    const Json& json, const TransformGraph::AnalysisStep& analysis, const std::string& assets,
    FileSystem& files, const std::string& where) {
  std::vector<std::pair<std::string, ColumnValue>> values;
  for (const auto& [name, constant] : member_of(json, "constants", where).items()) {
    values.emplace_back(name, ColumnValue{.values = read_leaf(constant, where)});
  }
  if (!analysis.analysis->writes_file()) return values;
  const StoredVocabulary stored =
      stored_vocabulary(files, member_of(json, "file", where),
                        join_path(assets, vocabulary_file_name(analysis.vocabulary_name)), where);
  const TokenFile vocabulary{.path = stored.path,
                             .has_frequencies = stores_frequency(*analysis.analysis),
                             .bytes = stored.bytes,
                             .crc32c = stored.crc32c,
                             .lines = stored.lines};
  values.emplace_back(kVocabularyResult,
                      ColumnValue{.vocabulary = std::make_shared<VocabularyTable>(vocabulary)});
  return values;
}

}  // namespace

std::string transform_text(const TransformGraph& graph, const AnalysesRun& run) {
  return transform_document_text({{"function", parse_config(graph_json(graph), "the transform")},
                                  {"results", results_json(graph, run)},
                                  {"rows", run.rows}});
}

std::string asset_map_text(const TransformGraph& graph) {
  Json json = Json::object();
  for (const auto& analysis : graph.analyses) {
    if (analysis.vocabulary_name.empty()) continue;
    json[analysis.vocabulary_name] = vocabulary_file_name(analysis.vocabulary_name);
  }
  return dump_config(json, "the names of the vocabularies");
}

void write_text(FileSystem& files, const std::string& path, const std::string& text) {
  const auto file = files.create(path, {.expected_bytes = text.size(), .mode = 0666});
  file->append(text);
  file->sync();
  file->close();
  files.sync_directory(parent_directory(path));
}

ReadTransform read_transform(FileSystem& files, const std::string& directory) {
  const TransformDocument document = read_transform_document(files, directory);
  const Json& json = document.json;
  const std::string& where = document.where;
  ReadTransform read;
  read.checksum = document.checksum;
  read.graph = read_graph(dump_config(member_of(json, "function", where), where), where);
  read.rows = integer_of(member_of(json, "rows", where), where);
  const Json& results = member_of(json, "results", where);
  if (results.size() != read.graph.analyses.size()) {
    throw DataLossError(str("damaged ", where, ": it has ", results.size(), " results, not ",
                            read.graph.analyses.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    read.values.push_back(
        read_results(results[i], read.graph.analyses[i], document.assets, files, where));
  }
  return read;
}

}  // namespace cohort::internal
