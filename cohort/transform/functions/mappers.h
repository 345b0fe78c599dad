// tf.Transform's mappers, from raw columns to features.
//
//   outputs["age"] = transform::scale_to_z_score(inputs["age"]);
//   outputs["city"] = transform::compute_and_apply_vocabulary(
//       inputs["city"], {.top_k = 1000, .num_oov_buckets = 1});
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/transform/functions/analyzers.h"
#include "cohort/transform/graph/column.h"

namespace cohort::transform {

// Results have the shape of their input; ragged columns stay ragged, and missing values missing.
// Errors of all: InvalidArgument (strings where numbers are needed, or the other way round; names
// the function), FailedPrecondition (a column that holds nothing).

struct ScaleOptions {
  // Each position within a row by its own statistics.
  bool elementwise = false;
};
struct ZScoreOptions {
  bool elementwise = false;
  // Missing: float64 and float16 stay, all others become float32.
  std::optional<DType> output_dtype = std::nullopt;
};
// (x - mean) / standard deviation; x - mean where that is 0.
COHORT_API Column scale_to_z_score(const Column& x, const ZScoreOptions& options = {});
// Maps [min, max] to [output_min, output_max], float32. A column whose values are all equal, or
// that has a NaN, is scaled by its sigmoid.
// Errors: InvalidArgument (output_min is not below output_max).
COHORT_API Column scale_by_min_max(const Column& x, double output_min = 0, double output_max = 1,
                                   const ScaleOptions& options = {});
COHORT_API Column scale_to_0_1(const Column& x, const ScaleOptions& options = {});

struct BucketizeOptions {
  std::optional<double> epsilon = std::nullopt;  // as in quantiles
  std::optional<Column> weights = std::nullopt;
  bool elementwise = false;
};
// The number, from 0, of the bucket of equal size in which a value lies. int64.
COHORT_API Column bucketize(const Column& x, int64_t num_buckets,
                            const BucketizeOptions& options = {});
// The number of boundaries that are at most x; NaN counts as greater than all. int64. `boundaries`
// is a statistic, [boundaries] or, of dense columns, [.., boundaries] for each position.
COHORT_API Column apply_buckets(const Column& x, const Column& boundaries);
// Errors: InvalidArgument (boundaries that do not ascend).
COHORT_API Column apply_buckets(const Column& x, const std::vector<double>& boundaries);

struct ApplyVocabularyOptions {
  int64_t default_value = -1;   // of tokens outside of the vocabulary, without OOV buckets
  int64_t num_oov_buckets = 0;  // behind the vocabulary; the token's fingerprint chooses one
};
// The line, from 0, of each token. int64.
COHORT_API Column apply_vocabulary(const Column& x, const Vocabulary& vocabulary,
                                   const ApplyVocabularyOptions& options = {});
struct ComputeAndApplyVocabularyOptions {
  int64_t default_value = -1;
  std::optional<int64_t> top_k = std::nullopt;
  std::optional<double> frequency_threshold = std::nullopt;
  int64_t num_oov_buckets = 0;
  std::string vocab_filename = "";  // empty: "vocab_compute_and_apply_vocabulary_vocabulary", ...
  bool store_frequency = false;
  std::vector<std::string> reserved_tokens = {};
  std::optional<Column> weights = std::nullopt;
};
// See vocabulary and apply_vocabulary.
COHORT_API Column
compute_and_apply_vocabulary(const Column& x, const ComputeAndApplyVocabularyOptions& options = {});

// [0, hash_buckets) by FarmHash's fingerprint, or with a key by SipHash. int64.
COHORT_API Column hash_strings(const Column& strings, int64_t hash_buckets,
                               const std::optional<std::array<uint64_t, 2>>& key = std::nullopt);

// Runs of neighbouring tokens of a ragged column, joined: from each token on those of all lengths
// from ngram_range[0] to ngram_range[1]. Ragged.
COHORT_API Column ngrams(const Column& tokens, std::array<int64_t, 2> ngram_range,
                         const std::string& separator);
// The different ones of them. Ragged.
COHORT_API Column bag_of_words(const Column& tokens, std::array<int64_t, 2> ngram_range,
                               const std::string& separator);
// The different values of each row, in the order of their first occurrence. Ragged.
COHORT_API Column deduplicate_tensor_per_row(const Column& x);
// The number of values in each row of a ragged column. int64 [rows].
COHORT_API Column word_count(const Column& tokens);

struct Tfidf {
  Column indices;  // int64, ragged: a row's different tokens, ascending
  Column weights;  // float32, ragged in the same way
};
struct TfidfOptions {
  bool smooth = true;  // as if one more row had each token once
};
// How often a token is in a row, of the row's tokens, times how rare it is:
// 1 + log((rows + 1) / (rows with it + 1)), without smooth 1 + log(rows / rows with it).
// x: numbers of tokens, ragged int64, counted modulo vocab_size.
COHORT_API Tfidf tfidf(const Column& x, int64_t vocab_size, const TfidfOptions& options = {});

}  // namespace cohort::transform
