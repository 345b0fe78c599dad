#include "cohort/transform/functions/mappers.h"

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/analysis/analyses.h"
#include "cohort/transform/functions/asked.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/graph/apply.h"

namespace cohort::transform {

using internal::apply;
using internal::node_of;
using internal::numbers_of;
using internal::str;
using keras::Config;

Column scale_to_z_score(const Column& x, const ZScoreOptions& options) {
  const auto node = numbers_of(x, "scale_to_z_score");
  const DType given = node->type.dtype.dtype();
  const bool stays = given == DType::Double || given == DType::Half;
  const DType dtype = options.output_dtype.value_or(stays ? given : float32);
  if (!at::isFloatingType(dtype)) {
    throw InvalidArgumentError(
        str("transform::scale_to_z_score: output_dtype is a floating one, "
            "but got ",
            internal::dtype_name(dtype)));
  }
  const StatisticOptions statistics{.reduce_instance_dims = !options.elementwise};
  return apply("z_score", Config().set("dtype", internal::dtype_name(dtype)),
               {x, mean(x, statistics), var(x, statistics)});
}

Column scale_by_min_max(const Column& x, double output_min, double output_max,
                        const ScaleOptions& options) {
  numbers_of(x, "scale_by_min_max");
  if (!(output_min < output_max)) {
    throw InvalidArgumentError(
        str("transform::scale_by_min_max: output_min is below output_max, "
            "but got ",
            output_min, " and ", output_max));
  }
  const StatisticOptions statistics{.reduce_instance_dims = !options.elementwise};
  return apply("min_max_scale",
               Config().set("output_min", output_min).set("output_max", output_max),
               {x, min(x, statistics), max(x, statistics)});
}

Column scale_to_0_1(const Column& x, const ScaleOptions& options) {
  return scale_by_min_max(x, 0, 1, options);
}

Column bucketize(const Column& x, int64_t num_buckets, const BucketizeOptions& options) {
  return apply_buckets(x, quantiles(x, num_buckets,
                                    {.epsilon = options.epsilon,
                                     .weights = options.weights,
                                     .reduce_instance_dims = !options.elementwise}));
}

Column apply_buckets(const Column& x, const Column& boundaries) {
  return apply("apply_buckets", {}, {x, boundaries});
}

Column apply_buckets(const Column& x, const std::vector<double>& boundaries) {
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const bool ascends = i == 0 || boundaries[i - 1] <= boundaries[i];
    if (ascends && !std::isnan(boundaries[i])) continue;
    throw InvalidArgumentError(str("transform::apply_buckets: boundaries ascend, but number ", i,
                                   " is ", boundaries[i],
                                   i == 0 ? "" : str(" behind ", boundaries[i - 1])));
  }
  return apply_buckets(x, internal::constant_vector(boundaries));
}

Column apply_vocabulary(const Column& x, const Vocabulary& vocabulary,
                        const ApplyVocabularyOptions& options) {
  return apply("apply_vocabulary",
               Config()
                   .set("default_value", options.default_value)
                   .set("num_oov_buckets", options.num_oov_buckets),
               {internal::token_column(x, "apply_vocabulary"), vocabulary.table()});
}

Column compute_and_apply_vocabulary(const Column& x,
                                    const ComputeAndApplyVocabularyOptions& options) {
  const Vocabulary learned(internal::traced_vocabulary(
      x,
      {.top_k = options.top_k,
       .frequency_threshold = options.frequency_threshold,
       .vocab_filename = options.vocab_filename,
       .store_frequency = options.store_frequency,
       .reserved_tokens = options.reserved_tokens,
       .weights = options.weights},
      "compute_and_apply_vocabulary",
      options.store_frequency ? "vocab_frequency_compute_and_apply_vocabulary"
                              : "vocab_compute_and_apply_vocabulary",
      "_vocabulary"));
  return apply_vocabulary(
      x, learned,
      {.default_value = options.default_value, .num_oov_buckets = options.num_oov_buckets});
}

Column hash_strings(const Column& strings, int64_t hash_buckets,
                    const std::optional<std::array<uint64_t, 2>>& key) {
  Config config;
  config.set("hash_buckets", hash_buckets);
  if (key.has_value()) {
    config.set("key", std::vector<int64_t>{static_cast<int64_t>((*key)[0]),
                                           static_cast<int64_t>((*key)[1])});
  }
  return apply("hash_strings", config, {strings});
}

Column ngrams(const Column& tokens, std::array<int64_t, 2> ngram_range,
              const std::string& separator) {
  return apply("ngrams",
               Config()
                   .set("ngram_range", std::vector<int64_t>{ngram_range[0], ngram_range[1]})
                   .set("separator", separator),
               {tokens});
}

Column bag_of_words(const Column& tokens, std::array<int64_t, 2> ngram_range,
                    const std::string& separator) {
  return deduplicate_tensor_per_row(ngrams(tokens, ngram_range, separator));
}

Column deduplicate_tensor_per_row(const Column& x) {
  const auto& node = node_of(x, "deduplicate_tensor_per_row");
  return apply("deduplicate", {}, {node->type.is_ragged() ? x : to_ragged(x)});
}

Column word_count(const Column& tokens) { return apply("row_lengths", {}, {tokens}); }

Tfidf tfidf(const Column& x, int64_t vocab_size, const TfidfOptions& options) {
  if (vocab_size < 1) {
    throw InvalidArgumentError(
        str("transform::tfidf: vocab_size is at least 1, but got ", vocab_size));
  }
  const Column tokens = apply("floor_mod", Config().set("divisor", vocab_size), {x});
  const auto analysis = internal::document_frequencies_analysis();
  const auto result = [&](const char* name) {
    return internal::statistic("tfidf", analysis, {tokens.node()}, name);
  };
  Config config;
  config.set("smooth", options.smooth);
  return {.indices = apply("distinct", {}, {tokens}),
          .weights = apply("tfidf", config, {tokens, result("documents"), result("rows")})};
}

}  // namespace cohort::transform
