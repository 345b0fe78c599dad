#include "cohort/transform/output/transform_file.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/crc32c.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/transform/graph/operations.h"
#include "cohort/version.h"

namespace cohort::internal {
namespace {

constexpr int kFileVersion = 1;

bool is_text(std::string_view bytes) {
  try {
    Json(std::string(bytes)).dump();
    return true;
  } catch (const Json::exception&) {
    return false;  // no UTF-8
  }
}

// A text, or of bytes that JSON cannot hold their hexadecimal digits.
Json text_json(std::string_view bytes) {
  if (is_text(bytes)) return std::string(bytes);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    digits += kDigits[byte >> 4];
    digits += kDigits[byte & 15];
  }
  return {{"hex", digits}};
}

std::string read_hex(const std::string& digits, const std::string& where) {
  const auto value = [&](char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw InvalidArgumentError(str(where, ": no hexadecimal digits"));
  };
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  }
  return bytes;
}

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
    for (const Json& value : values) {
      texts.push_back(value.is_string() ? value.get<std::string>()
                                        : read_hex(string_member(value, "hex", where), where));
    }
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
  const Json& file = member_of(json, "file", where);
  const std::string name = vocabulary_file_name(analysis.vocabulary_name);
  TokenFile vocabulary{.path = join_path(assets, name),
                       .has_frequencies = stores_frequency(*analysis.analysis)};
  vocabulary.bytes = static_cast<uint64_t>(integer_of(member_of(file, "bytes", where), where));
  vocabulary.lines = integer_of(member_of(file, "lines", where), where);
  vocabulary.crc32c = static_cast<uint32_t>(integer_of(member_of(file, "crc32c", where), where));
  if (!files.exists(vocabulary.path)) {
    throw DataLossError(str("vocabulary file ", quoted(vocabulary.path), " is missing"));
  }
  if (const uint64_t bytes = files.open(vocabulary.path)->size(); bytes != vocabulary.bytes) {
    throw DataLossError(str("vocabulary file ", quoted(vocabulary.path), " has ", bytes,
                            " bytes, where the transform was written with ", vocabulary.bytes,
                            "; it was changed or damaged"));
  }
  values.emplace_back(kVocabularyResult,
                      ColumnValue{.vocabulary = std::make_shared<VocabularyTable>(vocabulary)});
  return values;
}

std::string read_whole(FileSystem& files, const std::string& path) {
  const auto file = files.open(path);
  if (file->size() > kMostConfigBytes) {
    throw DataLossError(
        str(quoted(path), ": ", file->size(), " bytes are too many for a transform"));
  }
  std::string text(file->size(), '\0');
  file->read(0, text.data(), text.size());
  return text;
}

// The checksum of the file without it.
uint32_t checksum_of(const Json& json, const std::string& where) {
  return crc32c(dump_config(json, where));
}

}  // namespace

std::string transform_text(const TransformGraph& graph, const AnalysesRun& run) {
  const std::string where = "the transform";
  Json json = {{"file_version", kFileVersion},
               {"cohort", cohort::kVersion},
               {"function", parse_config(graph_json(graph), where)},
               {"results", results_json(graph, run)},
               {"rows", run.rows}};
  json["checksum"] = checksum_of(json, where);
  return dump_config(json, where) + '\n';
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
  const auto file = files.create(path, {.expected_bytes = text.size()});
  file->append(text);
  file->sync();
  file->close();
  files.sync_directory(parent_directory(path));
}

ReadTransform read_transform(FileSystem& files, const std::string& directory) {
  const std::string folder = join_path(directory, kTransformFolder);
  const std::string path = join_path(folder, kTransformFile);
  if (!files.exists(path)) {
    throw NotFoundError(str(quoted(directory), " holds no transform: there is no ", quoted(path),
                            "; transform::analyze_dataset writes one"));
  }
  const std::string where = str("transform ", quoted(path));
  Json json;
  ReadTransform read;
  try {
    json = parse_config(read_whole(files, path), where);
    read.checksum = static_cast<uint32_t>(integer_of(member_of(json, "checksum", where), where));
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(str("damaged ", error.what()));
  }
  json.erase("checksum");
  const int64_t found_version = integer_of(member_of(json, "file_version", where), where);
  if (found_version != kFileVersion) {
    throw InvalidArgumentError(str(where, ": it is of version ", found_version,
                                   ", but this Cohort reads version ", kFileVersion));
  }
  if (checksum_of(json, where) != read.checksum) {
    throw DataLossError(str("damaged ", where, ": its checksum is wrong"));
  }
  read.graph = read_graph(dump_config(member_of(json, "function", where), where), where);
  read.rows = integer_of(member_of(json, "rows", where), where);
  const Json& results = member_of(json, "results", where);
  if (results.size() != read.graph.analyses.size()) {
    throw DataLossError(str("damaged ", where, ": it has ", results.size(), " results, not ",
                            read.graph.analyses.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    read.values.push_back(read_results(results[i], read.graph.analyses[i],
                                       join_path(folder, kAssetsFolder), files, where));
  }
  return read;
}

}  // namespace cohort::internal
