// What the analyses of one phase have found in some rows: read here, or brought by others.
//
//   PhasePart part = read_part(graph, phase, run, dataset, options);
//   finish_part(graph, phase, std::move(part), options, run);     // the results of the phase
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "cohort/data/dataset.h"
#include "cohort/transform/analysis/accumulator.h"
#include "cohort/transform/passes/analyses_run.h"

namespace cohort::internal {

using Accumulators = std::vector<std::unique_ptr<Accumulator>>;

struct PassOptions {
  FileSystem& files;
  std::string directory;        // existing; for the files of vocabularies
  std::string spill_directory;  // existing
  int64_t num_threads;
  size_t memory_limit;  // of all tables of tokens together
  // Called again and again while the dataset is read, on the caller's thread.
  std::function<void()> between_batches = {};
};

struct PhasePart {
  Accumulators accumulators;  // of the phase's analyses, in their order
  int64_t rows = 0;
};

// The part of no rows.
PhasePart empty_part(const TransformGraph& graph, int phase, const PassOptions& options);

// The part of all rows of a dataset. Its batches are divided between threads in turn, so that the
// same number of threads gives the same results to the bit, for quantiles, too.
// Errors: InvalidArgument (a batch's columns are not those of the graph; what operations and
// analyses throw of values; names the batch), ResourceExhausted (the disk is full), what reading
// the dataset and between_batches throw.
PhasePart read_part(const TransformGraph& graph, int phase, const AnalysesRun& run,
                    const data::Dataset& dataset, const PassOptions& options);

// Puts the results of a part, that of all rows, into the run, and vocabularies into their files.
// Errors: those of Accumulator::finish.
void finish_part(const TransformGraph& graph, int phase, PhasePart part, const PassOptions& options,
                 AnalysesRun& run);

}  // namespace cohort::internal
