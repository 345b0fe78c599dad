#include "cohort/transform/passes/run_analyses.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/data/iteration/work_group.h"
#include "cohort/transform/graph/make_node.h"

namespace cohort::internal {
namespace {

// The analyses that one pass makes.
class Pass {
 public:
  Pass(const TransformGraph& graph, int phase, const AnalysisValues& values,
       const PassOptions& options)
      : options_(options),
        graph_(graph),
        analyses_(analyses_of(graph, phase)),
        evaluation_(graph, steps_of(graph, analyses_), values) {
    size_t tables = 0;
    for (const int analysis : analyses_) {
      tables += graph.analyses[analysis].analysis->uses_memory_limit();
    }
    const auto lanes = static_cast<size_t>(options.num_threads);
    // Smaller tables would write so many files that little else is done.
    constexpr size_t kLeastLimit = size_t{8} << 20;
    const size_t limit =
        std::max(kLeastLimit, options.memory_limit / std::max<size_t>(1, tables * lanes));
    for (size_t lane = 0; lane < lanes; ++lane) {
      Accumulators accumulators;
      for (const int analysis : analyses_) {
        accumulators.push_back(
            graph.analyses[analysis].analysis->start({.files = options.files,
                                                      .spill_directory = options.spill_directory,
                                                      .output_directory = options.directory,
                                                      .memory_limit = limit}));
      }
      lanes_.push_back(std::move(accumulators));
    }
  }

  // Returns the number of rows.
  int64_t read(const data::Dataset& dataset) {
    const auto lanes = static_cast<int64_t>(lanes_.size());
    std::vector<Structure> batches;
    int64_t rows = 0, first = 0;
    const auto work = [&] {
      std::vector<int64_t> counts(batches.size());
      parallel_for(static_cast<int64_t>(batches.size()), lanes,
                   [&](int64_t i) { counts[i] = add(batches[i], lanes_[i], first + i); });
      for (const int64_t count : counts) rows += count;
      first += static_cast<int64_t>(batches.size());
      batches.clear();
    };
    for (const Structure& batch : dataset.prefetch(2 * lanes)) {
      batches.push_back(batch);
      if (static_cast<int64_t>(batches.size()) == lanes) work();
    }
    work();
    return rows;
  }

  // The results, by analysis.
  std::vector<std::pair<int, AnalysisResult>> finish() {
    Accumulators& all = lanes_.front();
    for (size_t lane = 1; lane < lanes_.size(); ++lane) {
      for (size_t i = 0; i < all.size(); ++i) all[i]->merge(*lanes_[lane][i]);
      lanes_[lane].clear();
    }
    if (options_.merge_with_others) options_.merge_with_others(all);
    std::vector<std::pair<int, AnalysisResult>> results;
    for (size_t i = 0; i < all.size(); ++i) {
      results.emplace_back(analyses_[i], all[i]->finish());
      all[i].reset();
    }
    return results;
  }

 private:
  static std::vector<int> analyses_of(const TransformGraph& graph, int phase) {
    std::vector<int> analyses;
    for (size_t i = 0; i < graph.analyses.size(); ++i) {
      if (graph.analyses[i].phase == phase) analyses.push_back(static_cast<int>(i));
    }
    return analyses;
  }
  static std::vector<int> steps_of(const TransformGraph& graph, const std::vector<int>& analyses) {
    std::vector<int> steps;
    for (const int analysis : analyses) {
      const auto& inputs = graph.analyses[analysis].inputs;
      steps.insert(steps.end(), inputs.begin(), inputs.end());
    }
    return steps;
  }

  int64_t add(const Structure& batch, Accumulators& accumulators, int64_t number) const {
    const at::NoGradGuard no_grad;
    try {
      const std::vector<ColumnValue> values = evaluation_(batch);
      std::vector<ColumnBatch> columns;
      size_t next = 0;
      for (size_t i = 0; i < accumulators.size(); ++i) {
        columns.clear();
        for (size_t k = 0; k < graph_.analyses[analyses_[i]].inputs.size(); ++k) {
          columns.push_back(batch_of(values[next++]));
        }
        accumulators[i]->add(columns);
      }
      return columns.empty() ? 0 : columns.front().rows;
    } catch (...) {
      rethrow_with_context(str("analysis of batch ", number));
    }
  }

  const PassOptions& options_;
  const TransformGraph& graph_;
  const std::vector<int> analyses_;
  const Evaluation evaluation_;
  std::vector<Accumulators> lanes_;
};

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

AnalysesRun run_analyses(const TransformGraph& graph, const data::Dataset& dataset,
                         const PassOptions& options) {
  AnalysesRun run;
  run.results.resize(graph.analyses.size());
  run.values.resize(graph.analyses.size());
  for (int phase = 0; phase < graph.num_phases; ++phase) {
    Pass pass(graph, phase, run.values, options);
    run.rows = pass.read(dataset);
    for (auto& [number, result] : pass.finish()) {
      const auto& step = graph.analyses[number];
      std::optional<TokenFile> vocabulary;
      if (result.file.has_value()) {
        AnalysisResult::TextFile& file = *result.file;
        const std::string path =
            join_path(options.directory, vocabulary_file_name(step.vocabulary_name));
        options.files.rename(file.path, path);
        file.path = path;
        vocabulary = TokenFile{.path = path,
                               .has_frequencies = stores_frequency(*step.analysis),
                               .bytes = file.bytes,
                               .crc32c = file.crc32c,
                               .lines = file.lines};
      }
      run.values[number] = values_of(result, vocabulary);
      run.results[number] = std::move(result);
    }
  }
  return run;
}

}  // namespace cohort::internal
