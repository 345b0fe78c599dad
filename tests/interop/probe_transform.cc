#include <cohort/core/error.h>
#include <cohort/core/structure/ragged_tensor.h>
#include <cohort/data/dataset.h>
#include <cohort/transform/output/analyze.h>

#include <string>
#include <utility>
#include <vector>

#include "probe.h"
#include "transform/cases.h"
#include "transform/column_json.h"

namespace cohort::interop {
namespace {

data::Dataset read_columns(const Json& request) {
  Structure::Dict columns;
  for (const auto& [name, column] : request.at("columns").items()) {
    columns.emplace_back(name, column_of(column));
  }
  return data::Dataset::from_tensor_slices(Structure::make_dict(std::move(columns)))
      .batch(request.at("batch"));
}

// The rows of all batches one after another, as column_json() writes them.
void append(Json& column, const Json& rows) {
  if (column.is_null()) {
    column = rows;
    return;
  }
  for (const Json& value : rows.at("values")) column["values"].push_back(value);
  if (rows.contains("lengths")) {
    for (const Json& length : rows.at("lengths")) column["lengths"].push_back(length);
  } else {
    column["shape"][0] = column["shape"][0].get<int64_t>() + rows.at("shape")[0].get<int64_t>();
  }
}

Json statistic_json(const Leaf& statistic) {
  Json json = column_json(statistic);
  json["shape"].insert(json["shape"].begin(), 1);
  return json;
}

Json run(const Json& request) {
  const CaseFunction function = case_functions().at(request.at("function"));
  CaseOutputs outputs;
  const auto preprocess = [&](const transform::Columns& inputs) {
    outputs = function(inputs);
    // There must be an output; which one tells the statistics nothing.
    if (outputs.columns.size() == 0 && !outputs.statistics.empty()) {
      return transform::Columns{*inputs.begin()};
    }
    return outputs.columns;
  };
  const auto [dataset, output] = transform::analyze_and_transform_dataset(
      read_columns(request), preprocess, request.at("directory").get<std::string>() + "/output");

  Json answer = {{"transformed", Json::object()},
                 {"statistics", Json::object()},
                 {"vocabularies", Json::object()}};
  if (outputs.columns.size() > 0) {
    for (const Structure& batch : dataset) {
      for (const auto& [name, column] : batch.items()) {
        append(answer["transformed"][name], column_json(column));
      }
    }
  }
  for (const std::string& name : outputs.statistics) {
    answer["statistics"][name] = statistic_json(output.statistic(name));
  }
  for (const std::string& name : request.at("vocabularies").get<std::vector<std::string>>()) {
    answer["vocabularies"][name] = {{"file", output.vocabulary_file_by_name(name)},
                                    {"size", output.vocabulary_size_by_name(name)}};
  }
  return answer;
}

}  // namespace

Json transform_columns(const Json& request) {
  try {
    return run(request);
  } catch (const Error& error) {
    return {{"refused", error.what()}};
  }
}

}  // namespace cohort::interop
