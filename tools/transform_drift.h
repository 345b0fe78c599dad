// How far the numbers that an analysis has found have moved between two runs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/files/file_system.h"
#include "tools/stored_transform.h"

namespace cohort::tools {

// All of them are 0 where nothing has moved, and infinite where there is nothing to divide by, or a
// number where there was none. Of several positions in a row the one that moved most counts.
enum class Measure {
  kMean,       // by how many standard deviations of A the mean has moved
  kVariance,   // the larger variance divided by the smaller one, minus 1
  kRange,      // how far B's values lie outside of A's range, as a part of the range
  kQuantiles,  // the largest move of a boundary, as a part of the distance of A's outermost ones
  kSum,        // of sums and sizes for each row: what B's differs by, as a part of A's
  kTokens,     // of the first tokens of a vocabulary: the part that is new, or that is gone
  kShares,     // of keys, bins and tokens with frequencies: the largest difference between shares
};
inline constexpr std::array<std::string_view, 7> kMeasureNames = {
    "mean", "variance", "range", "quantiles", "sum", "tokens", "shares"};

struct DriftLimits {
  double all = 0.1;
  std::array<std::optional<double>, kMeasureNames.size()> of_measure = {};

  double of(Measure measure) const {
    return of_measure[static_cast<size_t>(measure)].value_or(all);
  }
};

struct Drift {
  Measure measure;
  double moved = 0;
  std::string a;  // what was measured
  std::string b;
};

// One run's side of a comparison.
struct AnalysisOfRun {
  const StoredTransform& transform;
  const StoredTransform::Analysis& analysis;
};
// What can be measured of two equal analyses. Of vocabularies the first `tokens` tokens count.
// Errors: those of read_vocabulary_head.
std::vector<Drift> drifts(internal::FileSystem& files, const AnalysisOfRun& a,
                          const AnalysisOfRun& b, uint64_t tokens);

}  // namespace cohort::tools
