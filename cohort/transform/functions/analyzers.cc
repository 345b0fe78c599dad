#include "cohort/transform/functions/analyzers.h"

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/analysis/analyses.h"
#include "cohort/transform/functions/asked.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/graph/apply.h"
#include "cohort/transform/graph/graph.h"
#include "cohort/transform/graph/make_node.h"

namespace cohort::internal {

using transform::Column;

Column traced_vocabulary(const Column& x, const transform::VocabularyOptions& options,
                         std::string_view user, std::string_view prefix, std::string_view suffix) {
  if (options.top_k.has_value() && *options.top_k < 1) {
    throw InvalidArgumentError(
        str("transform::", user, ": top_k is at least 1, but got ", *options.top_k));
  }
  if (options.frequency_threshold.has_value() && !(*options.frequency_threshold >= 0)) {
    throw InvalidArgumentError(str("transform::", user,
                                   ": frequency_threshold is at least 0, but got ",
                                   *options.frequency_threshold));
  }
  // Integers as they are: they decide what the analysis writes where there are no tokens.
  TransformNodes inputs = {tokens_of(x, user)};
  if (options.weights.has_value()) inputs.push_back(numbers_of(*options.weights, user));
  const auto call =
      trace_vocabulary(vocabulary_analysis({.top_k = options.top_k,
                                            .frequency_threshold = options.frequency_threshold,
                                            .weighted = options.weights.has_value(),
                                            .store_frequency = options.store_frequency,
                                            .reserved_tokens = options.reserved_tokens}),
                       std::move(inputs), options.vocab_filename, {prefix, suffix});
  return Column(make_statistic(call, std::string(kVocabularyResult)));
}

}  // namespace cohort::internal

namespace cohort::transform {

using internal::apply;
using internal::node_of;
using internal::numbers_of;
using internal::statistic;
using internal::str;
using keras::Config;

namespace {

internal::NumericOptions numeric(const internal::TransformNode& node,
                                 const StatisticOptions& options) {
  return {.dtype = node.type.dtype.dtype(), .reduce_instance_dims = options.reduce_instance_dims};
}

Column numeric_statistic(std::string_view user,
                         internal::AnalysisPtr (*analysis)(const internal::NumericOptions&),
                         const Column& x, const StatisticOptions& options,
                         const std::string& name) {
  const auto node = numbers_of(x, user);
  return statistic(user, analysis(numeric(*node, options)), {node}, name);
}

}  // namespace

Column min(const Column& x, const StatisticOptions& options) {
  return numeric_statistic("min", internal::min_and_max_analysis, x, options, "min");
}
Column max(const Column& x, const StatisticOptions& options) {
  return numeric_statistic("max", internal::min_and_max_analysis, x, options, "max");
}
Column sum(const Column& x, const StatisticOptions& options) {
  return numeric_statistic("sum", internal::sum_analysis, x, options, "sum");
}
Column mean(const Column& x, const StatisticOptions& options) {
  return numeric_statistic("mean", internal::mean_and_variance_analysis, x, options, "mean");
}
Column var(const Column& x, const StatisticOptions& options) {
  return numeric_statistic("var", internal::mean_and_variance_analysis, x, options, "variance");
}
Column size(const Column& x, const StatisticOptions& options) {
  const auto& node = node_of(x, "size");
  internal::take_column(*node, "size");
  return statistic("size",
                   internal::size_analysis({.reduce_instance_dims = options.reduce_instance_dims}),
                   {node}, "size");
}

Column quantiles(const Column& x, int64_t num_buckets, const QuantilesOptions& options) {
  const auto node = numbers_of(x, "quantiles");
  if (num_buckets < 2) {
    throw InvalidArgumentError(
        str("transform::quantiles: num_buckets is at least 2, but got ", num_buckets));
  }
  const double epsilon =
      options.epsilon.value_or(std::min(0.01, 1.0 / static_cast<double>(num_buckets)));
  if (!(epsilon > 0 && epsilon <= 1)) {
    throw InvalidArgumentError(
        str("transform::quantiles: epsilon is above 0 and at most 1, but got ", epsilon));
  }
  internal::TransformNodes inputs = {node};
  if (options.weights.has_value()) inputs.push_back(numbers_of(*options.weights, "quantiles"));
  const Column result = statistic(
      "quantiles",
      internal::quantiles_analysis({.num_buckets = num_buckets,
                                    .epsilon = epsilon,
                                    .weighted = options.weights.has_value(),
                                    .reduce_instance_dims = options.reduce_instance_dims}),
      inputs, "quantiles");
  return options.reduce_instance_dims ? apply("first", {}, {result}) : result;
}

namespace {

Histogram histogram_of(const Column& x, const Column& boundaries, int64_t num_boundaries) {
  // TensorFlow Transform's: a value that equals a boundary, but for rounding, counts above it.
  const Column shifted = apply("shift_boundaries", {}, {boundaries});
  const Column bins = apply("histogram_bins", {}, {x, shifted});
  return {.counts = statistic("histogram", internal::bucket_counts_analysis(num_boundaries - 1),
                              {bins.node()}, "counts"),
          .boundaries = shifted};
}

}  // namespace

Histogram histogram(const Column& x, const std::vector<double>& boundaries) {
  numbers_of(x, "histogram");
  std::vector<double> given = boundaries;
  for (int i = 0; given.size() < 11 && boundaries.empty(); ++i) given.push_back(i / 10.);
  if (given.size() < 2) {
    throw InvalidArgumentError("transform::histogram: it takes at least 2 boundaries");
  }
  for (size_t i = 0; i + 1 < given.size(); ++i) {
    if (given[i] < given[i + 1]) continue;
    throw InvalidArgumentError(str("transform::histogram: boundaries ascend, but ", given[i],
                                   " is followed by ", given[i + 1]));
  }
  return histogram_of(x, internal::constant_vector(given), static_cast<int64_t>(given.size()));
}

Histogram histogram(const Column& x, int num_boundaries) {
  numbers_of(x, "histogram");
  constexpr int kMostBoundaries = 1 << 24;
  if (num_boundaries < 2 || num_boundaries > kMostBoundaries) {
    throw InvalidArgumentError(str("transform::histogram: it takes 2 to ", kMostBoundaries,
                                   " boundaries, but got ", num_boundaries));
  }
  return histogram_of(x, apply("linspace", Config().set("num", num_boundaries), {min(x), max(x)}),
                      num_boundaries);
}

KeyCounts count_per_key(const Column& key) {
  const Column tokens = internal::token_column(key, "count_per_key");
  const auto analysis = internal::count_per_key_analysis();
  const Column keys = statistic("count_per_key", analysis, {tokens.node()}, "keys");
  return {.keys = key.dtype().is_string() ? keys : to_number(keys, {.dtype = key.dtype().dtype()}),
          .counts = statistic("count_per_key", analysis, {tokens.node()}, "counts")};
}

Vocabulary vocabulary(const Column& x, const VocabularyOptions& options) {
  return Vocabulary(internal::traced_vocabulary(
      x, options, "vocabulary",
      options.store_frequency ? "vocab_frequency_vocabulary" : "vocab_vocabulary", ""));
}

void keep_statistic(std::string_view name, const Column& statistic) {
  const auto& node = node_of(statistic, "keep_statistic");
  if (!node->type.is_statistic()) {
    throw InvalidArgumentError(str("transform::keep_statistic: ", internal::quoted(name), " is ",
                                   internal::describe(node->type), ", not a statistic"));
  }
  internal::trace_statistic(name, node);
}

}  // namespace cohort::transform
