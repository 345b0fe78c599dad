// What analyses have found and the function that asked for it, as a file: transform_document.h has
// its form.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/files/file_system.h"
#include "cohort/transform/graph/evaluation.h"
#include "cohort/transform/graph/graph.h"
#include "cohort/transform/output/transform_document.h"
#include "cohort/transform/passes/run_analyses.h"

namespace cohort::internal {

struct ReadTransform {
  TransformGraph graph;
  AnalysisValues values;  // of analyses; a vocabulary's table is read when it is asked for
  int64_t rows = 0;       // that were analysed
  uint32_t checksum = 0;  // of all of it
};

// Errors: InvalidArgument (names that are not UTF-8).
std::string transform_text(const TransformGraph& graph, const AnalysesRun& run);
std::string asset_map_text(const TransformGraph& graph);
// Writes a file of this name and syncs it and its directory.
void write_text(FileSystem& files, const std::string& path, const std::string& text);

// Errors: NotFound (no such output), DataLoss (damaged: says which file and what), InvalidArgument
// (of a later version), those of read_graph.
ReadTransform read_transform(FileSystem& files, const std::string& directory);

}  // namespace cohort::internal
