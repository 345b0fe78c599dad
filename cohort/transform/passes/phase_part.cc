#include "cohort/transform/passes/phase_part.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/data/iteration/work_group.h"

namespace cohort::internal {
namespace {

std::vector<int> analyses_of(const TransformGraph& graph, int phase) {
  std::vector<int> analyses;
  for (size_t i = 0; i < graph.analyses.size(); ++i) {
    if (graph.analyses[i].phase == phase) analyses.push_back(static_cast<int>(i));
  }
  return analyses;
}

// `parts` share the memory.
Accumulators start(const TransformGraph& graph, const std::vector<int>& analyses, size_t parts,
                   const PassOptions& options) {
  size_t tables = 0;
  for (const int analysis : analyses) {
    tables += graph.analyses[analysis].analysis->uses_memory_limit();
  }
  // Smaller tables would write so many files that little else is done.
  constexpr size_t kLeastLimit = size_t{8} << 20;
  const size_t limit =
      std::max(kLeastLimit, options.memory_limit / std::max<size_t>(1, tables * parts));
  Accumulators accumulators;
  for (const int analysis : analyses) {
    accumulators.push_back(
        graph.analyses[analysis].analysis->start({.files = options.files,
                                                  .spill_directory = options.spill_directory,
                                                  .output_directory = options.directory,
                                                  .memory_limit = limit}));
  }
  return accumulators;
}

// Reads a dataset, with accumulators for each thread.
class Pass {
 public:
  Pass(const TransformGraph& graph, int phase, const AnalysisValues& values,
       const PassOptions& options)
      : graph_(graph),
        analyses_(analyses_of(graph, phase)),
        evaluation_(graph, steps_of(graph, analyses_), values) {
    const auto lanes = static_cast<size_t>(options.num_threads);
    for (size_t lane = 0; lane < lanes; ++lane) {
      lanes_.push_back(start(graph, analyses_, lanes, options));
    }
  }

  // Returns the number of rows.
  int64_t read(const data::Dataset& dataset, const std::function<void()>& between_batches) {
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
      if (between_batches) between_batches();
    };
    for (const Structure& batch : dataset.prefetch(2 * lanes)) {
      batches.push_back(batch);
      if (static_cast<int64_t>(batches.size()) == lanes) work();
    }
    work();
    return rows;
  }

  Accumulators merged() {
    Accumulators all = std::move(lanes_.front());
    for (size_t lane = 1; lane < lanes_.size(); ++lane) {
      for (size_t i = 0; i < all.size(); ++i) all[i]->merge(*lanes_[lane][i]);
      lanes_[lane].clear();
    }
    return all;
  }

 private:
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

  const TransformGraph& graph_;
  const std::vector<int> analyses_;
  const GraphEvaluation evaluation_;
  std::vector<Accumulators> lanes_;
};

}  // namespace

PhasePart empty_part(const TransformGraph& graph, int phase, const PassOptions& options) {
  return {.accumulators = start(graph, analyses_of(graph, phase), 1, options)};
}

PhasePart read_part(const TransformGraph& graph, int phase, const AnalysesRun& run,
                    const data::Dataset& dataset, const PassOptions& options) {
  Pass pass(graph, phase, run.values, options);
  PhasePart part;
  part.rows = pass.read(dataset, options.between_batches);
  part.accumulators = pass.merged();
  return part;
}

void finish_part(const TransformGraph& graph, int phase, PhasePart part, const PassOptions& options,
                 AnalysesRun& run) {
  const std::vector<int> analyses = analyses_of(graph, phase);
  for (size_t i = 0; i < analyses.size(); ++i) {
    AnalysisResult result = part.accumulators[i]->finish();
    part.accumulators[i].reset();
    if (result.file.has_value()) {
      const std::string& name = graph.analyses[analyses[i]].vocabulary_name;
      const std::string path = join_path(options.directory, vocabulary_file_name(name));
      options.files.rename(result.file->path, path);
      result.file->path = path;
    }
    put_result(run, graph, static_cast<size_t>(analyses[i]), std::move(result));
  }
  run.rows = part.rows;
}

}  // namespace cohort::internal
