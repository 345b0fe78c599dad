// Statistics of a whole dataset, for preprocessing functions: tf.Transform's analyzers.
//
//   outputs["centred"] = inputs["x"] - transform::mean(inputs["x"]);
//   transform::keep_statistic("cities", transform::count_per_key(inputs["city"]).keys);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/transform/graph/column.h"

namespace cohort::transform {

// In all functions here dense columns count all their values, ragged ones those that are there.
// Results are exact, whatever the number of threads and workers (quantiles: within a bound), and
// have no rows. Without values min and max are infinite or the dtype's limits, and mean, var, sum
// and size 0.
// Errors of all: InvalidArgument (strings where numbers are needed; names the function),
// FailedPrecondition (a column that holds nothing).

struct StatisticOptions {
  // All values make one result. Else each position within a row has its own, for dense columns.
  bool reduce_instance_dims = true;
};
// The result has the column's dtype. A NaN makes it NaN.
COHORT_API Column min(const Column& x, const StatisticOptions& options = {});
COHORT_API Column max(const Column& x, const StatisticOptions& options = {});
// int64 of integers, else the column's dtype.
COHORT_API Column sum(const Column& x, const StatisticOptions& options = {});
// int64: the number of values, of strings, too.
COHORT_API Column size(const Column& x, const StatisticOptions& options = {});
// Mean and variance (of the population) of the finite values, float32 of integers.
COHORT_API Column mean(const Column& x, const StatisticOptions& options = {});
COHORT_API Column var(const Column& x, const StatisticOptions& options = {});

struct QuantilesOptions {
  // A boundary's rank among all values is wrong by at most this part of them. Missing: the smaller
  // of 0.01 and 1 / num_buckets.
  std::optional<double> epsilon = std::nullopt;
  // A number for each value or row. What has none above 0 does not count.
  std::optional<Column> weights = std::nullopt;
  bool reduce_instance_dims = true;
};
// float32 [num_buckets - 1], ascending: what divides the values into buckets of equal size; with
// reduce_instance_dims = false [.., num_buckets - 1].
// Errors: InvalidArgument (num_buckets below 2, epsilon not in (0, 1]).
COHORT_API Column quantiles(const Column& x, int64_t num_buckets,
                            const QuantilesOptions& options = {});

struct Histogram {
  Column counts;      // int64 [bins]
  Column boundaries;  // float32 [bins + 1], each less by 0.0001 than it was given, as in tft
};
// Counts between these boundaries; default: eleven from 0 to 1. What lies outside counts to the
// outermost bins, and NaN to the first.
// Errors: InvalidArgument (fewer than 2 boundaries; they do not ascend).
COHORT_API Histogram histogram(const Column& x, const std::vector<double>& boundaries = {});
// Counts between num_boundaries boundaries of equal distance, from the least to the greatest value.
COHORT_API Histogram histogram(const Column& x, int num_boundaries);

struct KeyCounts {
  Column keys;    // of the column's dtype, in ascending order of their texts
  Column counts;  // int64 of the same shape
};
// How often each value occurs. The column has strings or integers.
COHORT_API KeyCounts count_per_key(const Column& key);

// What `vocabulary` has learned; for apply_vocabulary. A handle.
class COHORT_API Vocabulary {
 public:
  explicit Vocabulary(Column table) : table_(std::move(table)) {}
  const Column& table() const { return table_; }

 private:
  Column table_;
};

struct VocabularyOptions {
  std::optional<int64_t> top_k = std::nullopt;  // the most frequent ones
  // Tokens of a smaller frequency (sum of weights) are left out.
  std::optional<double> frequency_threshold = std::nullopt;
  // The name in TFTransformOutput, and with '_' and '-' for what does not suit one the name of the
  // file. Empty: "vocab_vocabulary", "vocab_vocabulary_1", ...
  std::string vocab_filename = "";
  // Each line is the frequency, a blank and the token.
  bool store_frequency = false;
  // The first lines, whatever their frequency.
  std::vector<std::string> reserved_tokens = {};
  // A number for each token or row, in place of 1.
  std::optional<Column> weights = std::nullopt;
};
// The tokens of a column of strings or integers, the most frequent first, those of one frequency
// with the greatest token first, as a text file of the output, a token a line. Left out are empty
// tokens and those with a line's end. It is made even if nothing applies it.
// Errors: InvalidArgument (numbers with fractions; top_k or frequency_threshold below 0; a name or
// file that another vocabulary has).
COHORT_API Vocabulary vocabulary(const Column& x, const VocabularyOptions& options = {});

// Keeps a statistic in the output: TFTransformOutput::statistic(name).
// Errors: InvalidArgument (it is no statistic; the name is taken or empty), FailedPrecondition (no
// function is being traced).
COHORT_API void keep_statistic(std::string_view name, const Column& statistic);

}  // namespace cohort::transform

namespace cohort::internal {
// The vocabulary that `user`, a function's name, asks for; its default name is prefix, the number
// of the call and suffix. Errors: see transform::vocabulary.
transform::Column traced_vocabulary(const transform::Column& x,
                                    const transform::VocabularyOptions& options,
                                    std::string_view user, std::string_view prefix,
                                    std::string_view suffix);
}  // namespace cohort::internal
