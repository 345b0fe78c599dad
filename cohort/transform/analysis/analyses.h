// The analyses that there are. Values, dtypes and orders of results are tf.Transform's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/transform/analysis/accumulator.h"

namespace cohort::internal {

using AnalysisPtr = std::shared_ptr<const Analysis>;

// Options of analyses of numbers (int8 to int64, uint8, float16, bfloat16, float32, float64).
struct NumericOptions {
  // The dtype of the input. Not given: that of the first batch (float32 if there is none).
  std::optional<DType> dtype = std::nullopt;
  // All values make one result of shape []. Else each position within a row has its own, and the
  // result has the shape of a row, with 2^20 positions at most; for dense inputs only.
  bool reduce_instance_dims = true;
};

// Results "min" and "max", of the input's dtype; NaN where a value is. Without values, the greatest
// number there is and its negative: infinities, or those of an integer's dtype.
AnalysisPtr min_and_max_analysis(const NumericOptions& options = {});

// Result "sum": int64 of integers (modulo 2^64), else the input's dtype. Exact, rounded once. NaNs
// and infinities count as in an addition.
AnalysisPtr sum_analysis(const NumericOptions& options = {});

// Result "size", int64: the number of values, with NaNs. Strings, too.
AnalysisPtr size_analysis(const NumericOptions& options = {});

// Results "mean" and "variance" (of the population) in the input's dtype, float32 of integers, each
// exact and rounded once; "count", int64: the number of finite values. NaNs and infinities are
// passed over. Without finite values all are 0.
AnalysisPtr mean_and_variance_analysis(const NumericOptions& options = {});

struct QuantilesOptions {
  int64_t num_buckets = 2;
  // A boundary's rank is that of the exact boundary within epsilon times the weight of all values.
  double epsilon = 0.01;
  bool weighted = false;  // a second input: a number for each value, or for each row
  bool reduce_instance_dims = true;
};
// Result "quantiles", float32 [1, num_buckets - 1], ascending; [.., num_buckets - 1] behind the
// shape of a row where instance dimensions are not reduced. Boundary i of an exact result is the
// smallest value such that the weight of the values up to it is above i / num_buckets of all
// weight. Result "error", float64 of the same shape without the last dimension: the bound that
// holds for these very values, as a part of all weight, at most epsilon; 0: the result is exact.
// NaNs and values whose weight is not above 0 are passed over. Without values boundaries are 0.
AnalysisPtr quantiles_analysis(const QuantilesOptions& options);

struct VocabularyOptions {
  std::optional<int64_t> top_k = std::nullopt;
  // Tokens of a smaller frequency (sum of weights) are left out.
  std::optional<double> frequency_threshold = std::nullopt;
  bool weighted = false;         // a second input: a number for each token, or for each row
  bool store_frequency = false;  // a line is "frequency token"
  std::vector<std::string> reserved_tokens = {};  // the first lines, whatever their frequency
};
// Writes a text file, a token a line: the most frequent first, those of one frequency with the
// greatest token first. The input has strings or integers, whose tokens are their decimal digits.
// Left out are tokens that are empty or contain a newline or a carriage return. An empty vocabulary
// has the one line that tf.Transform writes then. Weights are summed exactly; a sum that is NaN is
// the lowest of all. Result "size", int64: the number of lines.
AnalysisPtr vocabulary_analysis(const VocabularyOptions& options = {});

// Results "keys", in ascending order, and "counts", int64 of the same shape. Integers make keys of
// int64, in the order of their decimal digits as texts.
AnalysisPtr count_per_key_analysis();

// How often each number of [0, num_buckets) occurs: the counts of a histogram whose input was
// bucketized. Result "counts", int64 [num_buckets].
// Errors of add(): InvalidArgument (another number).
AnalysisPtr bucket_counts_analysis(int64_t num_buckets);

// In how many rows each index occurs. The input has int64 of at least 0, dense or ragged. Results
// "documents", int64 [1 + the largest index], and "rows", int64: the number of all rows.
// Errors of add(): InvalidArgument (a negative index, or one of 2^27 or more).
AnalysisPtr document_frequencies_analysis();

// The analysis of this kind and these attributes; a whole number may stand for a double.
// Errors: InvalidArgument (names the kind or the attribute, and those that there are).
AnalysisPtr make_analysis(std::string_view kind, const Attributes& attributes);

}  // namespace cohort::internal
