// Transforms for the tests of the commands, written as transform::analyze_dataset writes them.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/files/crc32c.h"
#include "cohort/core/files/file_system.h"
#include "cohort/transform/output/transform_document.h"

namespace cohort::tools {

// Of a column "age", and a ragged one of strings "home city".
struct TransformContent {
  int64_t rows = 8;
  double mean = 40, variance = 100;
  double min = 20, max = 60;
  std::vector<double> quantiles = {10, 20, 30};                           // of age / 2
  std::vector<std::string> tokens = {"4 rome", "3 par\x1bis", "1 bonn"};  // lines with frequencies
  std::vector<std::string> keys = {"bonn", "par\x1bis", "rome"};
  std::vector<int64_t> counts = {1, 3, 4};
  std::vector<double> sums = {1, 2.5};  // of each position of a column "pair"
  int divisor = 2;
};

inline nlohmann::json constant_json(const char* dtype, const nlohmann::json& values) {
  nlohmann::json shape = nlohmann::json::array();
  if (values.is_array()) shape.push_back(values.size());
  return {{"dtype", dtype},
          {"shape", shape},
          {"values", values.is_array() ? values : nlohmann::json::array({values})}};
}

inline nlohmann::json function_json(const TransformContent& content) {
  using nlohmann::json;
  const auto column = [](const char* name, const char* dtype, bool ragged, const json& shape) {
    return json{{"name", name}, {"type", {{"dtype", dtype}, {"ragged", ragged}, {"shape", shape}}}};
  };
  const auto input = [](const char* name) {
    return json{{"operation", "input"}, {"attributes", {{"name", name}}}};
  };
  const auto statistic = [](const char* name, int analysis) {
    return json{
        {"operation", "statistic"}, {"attributes", {{"name", name}}}, {"analysis", analysis}};
  };
  const auto step = [](const char* operation, const json& inputs, const json& attributes) {
    return json{{"operation", operation}, {"inputs", inputs}, {"attributes", attributes}};
  };
  const auto analysis = [](const char* kind, const json& inputs, const json& attributes) {
    return json{{"kind", kind}, {"inputs", inputs}, {"attributes", attributes}};
  };
  const auto named = [](const char* name, int number) {
    return json{{"name", name}, {"step", number}};
  };
  const json one_each = {{"dtype", "float32"}, {"reduce_instance_dims", true}};
  json vocabulary = analysis("vocabulary", {4}, {{"store_frequency", true}, {"top_k", 1000}});
  vocabulary["vocabulary"] = "city names";
  return {
      {"version", 1},
      {"columns",
       {column("age", "float32", false, json::array()),
        column("home city", "string", true, json::array()), column("pair", "float32", false, {2})}},
      {"steps",
       {input("age"), statistic("mean", 0), statistic("variance", 0),
        step("z_score", {0, 1, 2}, {{"dtype", "float32"}}), input("home city"),
        statistic("vocabulary", 2),
        step("apply_vocabulary", {4, 5}, {{"default_value", -1}, {"num_oov_buckets", 1}}),
        step("constant", json::array(), {{"value", content.divisor}}),
        step("divide", {0, 7}, json::object()), statistic("quantiles", 3),
        step("apply_buckets", {8, 9}, json::object()), input("pair"), statistic("keys", 4)}},
      {"analyses",
       {analysis("mean_and_variance", {0}, one_each), analysis("min_and_max", {0}, one_each),
        vocabulary, analysis("quantiles", {8}, {{"epsilon", 0.01}, {"num_buckets", 4}}),
        analysis("count_per_key", {4}, json::object()),
        analysis("sum", {11}, {{"dtype", "float32"}, {"reduce_instance_dims", false}})}},
      {"outputs", {named("age", 3), named("city", 6), named("half", 10)}},
      {"statistics", {named("cities", 12)}}};
}

inline nlohmann::json results_json(const TransformContent& content, const std::string& vocabulary) {
  using nlohmann::json;
  json keys = json::array();
  for (const std::string& key : content.keys) keys.push_back(internal::text_json(key));
  return {{{"constants",
            {{"mean", constant_json("float32", content.mean)},
             {"variance", constant_json("float32", content.variance)},
             {"count", constant_json("int64", content.rows)}}}},
          {{"constants",
            {{"min", constant_json("float32", content.min)},
             {"max", constant_json("float32", content.max)}}}},
          {{"constants", {{"size", constant_json("int64", content.tokens.size())}}},
           {"file",
            {{"name", "city-names"},
             {"bytes", vocabulary.size()},
             {"lines", content.tokens.size()},
             {"crc32c", internal::crc32c(vocabulary)}}}},
          {{"constants",
            {{"quantiles", constant_json("float32", content.quantiles)},
             {"error", constant_json("float64", 0.)}}}},
          {{"constants",
            {{"keys", constant_json("string", keys)},
             {"counts", constant_json("int64", content.counts)}}}},
          {{"constants", {{"sum", constant_json("float32", content.sums)}}}}};
}

inline void write_file(internal::FileSystem& files, const std::string& path,
                       const std::string& bytes) {
  files.make_directories(internal::parent_directory(path));
  const auto file = files.create(path);
  file->append(bytes);
  file->sync();
  file->close();
}

inline std::string transform_path(const std::string& directory) {
  return directory + "/transform_fn/transform.json";
}
inline std::string vocabulary_path(const std::string& directory) {
  return directory + "/transform_fn/assets/city-names";
}

inline void write_transform(internal::FileSystem& files, const std::string& directory,
                            const TransformContent& content = {}) {
  std::string vocabulary;
  for (const std::string& line : content.tokens) vocabulary += line + '\n';
  write_file(files, vocabulary_path(directory), vocabulary);
  write_file(files, transform_path(directory),
             internal::transform_document_text({{"function", function_json(content)},
                                                {"results", results_json(content, vocabulary)},
                                                {"rows", content.rows}}));
}

}  // namespace cohort::tools
