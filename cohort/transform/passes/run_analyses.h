// Reads a dataset once for each phase of a graph, and finds what its analyses ask for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/data/dataset.h"
#include "cohort/transform/analysis/accumulator.h"
#include "cohort/transform/graph/evaluation.h"
#include "cohort/transform/graph/graph.h"

namespace cohort::internal {

using Accumulators = std::vector<std::unique_ptr<Accumulator>>;

struct PassOptions {
  FileSystem& files;
  std::string directory;  // existing; for the files of vocabularies
  std::string spill_directory;
  int64_t num_threads;
  size_t memory_limit;  // of all tables of tokens together
  // Adds to the accumulators of a phase, which hold what this process has read, what other
  // processes have. Empty: there are none.
  std::function<void(Accumulators&)> merge_with_others = {};
};

struct AnalysesRun {
  std::vector<AnalysisResult> results;  // of each analysis; its file has its final name
  AnalysisValues values;                // the same for Evaluation
  int64_t rows = 0;                     // that this process has read
};

// The batches of the dataset are divided between threads in turn, so that the same number of
// threads gives the same results to the bit, for quantiles, too.
// Errors: InvalidArgument (a batch's columns are not those of the graph; what operations and
// analyses throw of values; names the batch), ResourceExhausted (the disk is full), what reading
// the dataset throws.
AnalysesRun run_analyses(const TransformGraph& graph, const data::Dataset& dataset,
                         const PassOptions& options);

// What an analysis has found, as values; `vocabulary` is the file that it wrote.
std::vector<std::pair<std::string, ColumnValue>> values_of(
    const AnalysisResult& result, const std::optional<TokenFile>& vocabulary);
// Whether an analysis that writes a vocabulary writes "frequency token" in each line.
bool stores_frequency(const Analysis& analysis);

}  // namespace cohort::internal
