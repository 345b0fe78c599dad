// `cohort transform ...`: looks at what transform::analyze_dataset has written, without libtorch.
//
// Each command writes its result to `out` and returns the program's exit code. Names from files are
// written as printable() makes them. Memory: that of transform.json, and kMostHeadBytes of a
// vocabulary.
// Errors: NotFound (no transform there), DataLoss (damaged), InvalidArgument (of a later version),
// as FileSystem's.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "cohort/core/files/file_system.h"
#include "tools/exit_codes.h"
#include "tools/transform_drift.h"

namespace cohort::tools {

struct TransformShowOptions {
  std::string directory;
  uint64_t max_values = 10;  // quantiles, tokens, keys, ... of one analysis
  bool json = false;
};
// The columns, the outputs with how they are made, and what each analysis has found.
int show_transform(internal::FileSystem& files, const TransformShowOptions& options,
                   std::ostream& out);

struct TransformCompareOptions {
  std::string a;  // the earlier one
  std::string b;
  DriftLimits limits = {};
  uint64_t tokens = 1000;  // the first ones of each vocabulary, which are compared
  bool json = false;
};
// What differs between two functions, and how far the numbers of equal analyses have moved. Returns
// kExitDifferent where the functions differ or a number has moved beyond its limit.
int compare_transforms(internal::FileSystem& files, const TransformCompareOptions& options,
                       std::ostream& out);

}  // namespace cohort::tools
