#include "cohort/transform/passes/analyses_run.h"

#include <ATen/ops/tensor.h>

#include <memory>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/data/storage/element_codec.h"
#include "cohort/transform/graph/make_node.h"

namespace cohort::internal {
namespace {

Structure result_structure(const AnalysisResult& result) {
  Structure::Dict constants;
  for (const auto& [name, leaf] : result.constants) constants.emplace_back(name, leaf);
  std::vector<Structure> members = {Structure::make_dict(std::move(constants))};
  if (const auto& file = result.file; file.has_value()) {
    members.emplace_back(StringTensor({file->path}));
    members.emplace_back(at::tensor(std::vector<int64_t>{
        file->lines, static_cast<int64_t>(file->bytes), static_cast<int64_t>(file->crc32c)}));
  }
  return Structure::make_tuple(std::move(members));
}

AnalysisResult read_result(const Structure& structure) {
  AnalysisResult result;
  for (const auto& [name, value] : structure[0].items()) {
    result.constants.emplace_back(name, value.leaf());
  }
  if (structure.size() == 1) return result;
  const Tensor& numbers = structure[2].tensor();
  const auto number = [&](int64_t i) { return numbers[i].item<int64_t>(); };
  result.file = AnalysisResult::TextFile{.path = std::string(structure[1].strings()[0]),
                                         .lines = number(0),
                                         .bytes = static_cast<uint64_t>(number(1)),
                                         .crc32c = static_cast<uint32_t>(number(2))};
  return result;
}

}  // namespace

bool stores_frequency(const Analysis& analysis) {
  for (const auto& [name, value] : analysis.attributes()) {
    if (name == "store_frequency") return std::get<bool>(value);
  }
  return false;
}

std::vector<std::pair<std::string, ColumnValue>> values_of(
    const AnalysisResult& result, const std::optional<TokenFile>& vocabulary) {
  std::vector<std::pair<std::string, ColumnValue>> values;
  for (const auto& [name, leaf] : result.constants) {
    values.emplace_back(name, ColumnValue{.values = leaf});
  }
  if (vocabulary.has_value()) {
    values.emplace_back(kVocabularyResult,
                        ColumnValue{.vocabulary = std::make_shared<VocabularyTable>(*vocabulary)});
  }
  return values;
}

void put_result(AnalysesRun& run, const TransformGraph& graph, size_t analysis,
                AnalysisResult result) {
  std::optional<TokenFile> vocabulary;
  if (const auto& file = result.file; file.has_value()) {
    vocabulary = TokenFile{.path = file->path,
                           .has_frequencies = stores_frequency(*graph.analyses[analysis].analysis),
                           .bytes = file->bytes,
                           .crc32c = file->crc32c,
                           .lines = file->lines};
  }
  run.values[analysis] = values_of(result, vocabulary);
  run.results[analysis] = std::move(result);
}

std::string results_text(const AnalysesRun& run) {
  std::vector<Structure> results;
  for (const AnalysisResult& result : run.results) results.push_back(result_structure(result));
  return encode_element(Structure::make_tuple(std::move(results)));
}

void put_results(AnalysesRun& run, const TransformGraph& graph, std::string_view text,
                 std::string_view source) {
  const Structure results = decode_element(text, source);
  if (!results.is_tuple() || results.size() != graph.analyses.size()) {
    throw DataLossError(str(source, ": expected the results of ", graph.analyses.size(),
                            " analyses, but got ", results.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    AnalysisResult result = read_result(results[i]);
    const bool is_known = !result.constants.empty() || result.file.has_value();
    if (is_known) put_result(run, graph, i, std::move(result));
  }
}

}  // namespace cohort::internal
