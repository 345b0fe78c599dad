#include "cases.h"

#include <cohort/transform/functions/analyzers.h>
#include <cohort/transform/functions/column_functions.h>
#include <cohort/transform/functions/mappers.h>

namespace cohort::interop {
namespace {

namespace tft = transform;
using tft::Column;
using tft::Columns;

CaseOutputs analyze(const Column& x, const tft::StatisticOptions& options) {
  CaseOutputs outputs;
  outputs.keep("min", tft::min(x, options));
  outputs.keep("max", tft::max(x, options));
  outputs.keep("mean", tft::mean(x, options));
  outputs.keep("var", tft::var(x, options));
  outputs.keep("sum", tft::sum(x, options));
  outputs.keep("size", tft::size(x, options));
  return outputs;
}

CaseOutputs analyzers(const Columns& inputs) { return analyze(inputs["x"], {}); }

CaseOutputs analyzers_elementwise(const Columns& inputs) {
  return analyze(inputs["x"], {.reduce_instance_dims = false});
}

CaseOutputs mean_of_strings(const Columns& inputs) {
  CaseOutputs outputs;
  outputs.keep("y", tft::mean(inputs["x"]));
  return outputs;
}

CaseOutputs scale(const Columns& inputs) {
  const Column& x = inputs["x"];
  return {{{"z", tft::scale_to_z_score(x)},
           {"unit", tft::scale_to_0_1(x)},
           {"range", tft::scale_by_min_max(x, -1, 3)}}};
}

CaseOutputs scale_elementwise(const Columns& inputs) {
  const Column& x = inputs["x"];
  return {{{"z", tft::scale_to_z_score(x, {.elementwise = true})},
           {"unit", tft::scale_to_0_1(x, {.elementwise = true})}}};
}

CaseOutputs scale_in_two_phases(const Columns& inputs) {
  return {{{"y", tft::scale_to_0_1(tft::scale_to_z_score(inputs["x"]))}}};
}

CaseOutputs scale_backwards(const Columns& inputs) {
  return {{{"y", tft::scale_by_min_max(inputs["x"], 1, 1)}}};
}

CaseOutputs quantiles(const Columns& inputs) {
  CaseOutputs outputs;
  outputs.keep("four", tft::quantiles(inputs["x"], 4, {.epsilon = 0.01}));
  outputs.keep("ten", tft::quantiles(inputs["x"], 10, {.epsilon = 0.01}));
  return outputs;
}

CaseOutputs quantiles_weighted(const Columns& inputs) {
  CaseOutputs outputs;
  outputs.keep("four", tft::quantiles(inputs["x"], 4, {.epsilon = 0.01, .weights = inputs["w"]}));
  return outputs;
}

CaseOutputs quantiles_elementwise(const Columns& inputs) {
  CaseOutputs outputs;
  outputs.keep("three",
               tft::quantiles(inputs["x"], 3, {.epsilon = 0.01, .reduce_instance_dims = false}));
  return outputs;
}

CaseOutputs bucketize(const Columns& inputs) {
  return {{{"two", tft::bucketize(inputs["x"], 2)}, {"four", tft::bucketize(inputs["x"], 4)}}};
}

CaseOutputs bucketize_weighted(const Columns& inputs) {
  return {{{"y", tft::bucketize(inputs["x"], 3, {.weights = inputs["w"]})}}};
}

CaseOutputs bucketize_elementwise(const Columns& inputs) {
  return {{{"y", tft::bucketize(inputs["x"], 3, {.elementwise = true})}}};
}

CaseOutputs bucketize_none(const Columns& inputs) {
  return {{{"y", tft::bucketize(inputs["x"], 0)}}};
}

CaseOutputs bucketize_strings(const Columns& inputs) {
  return {{{"y", tft::bucketize(inputs["x"], 2)}}};
}

CaseOutputs apply_buckets(const Columns& inputs) {
  return {{{"three", tft::apply_buckets(inputs["x"], {1, 2, 3})},
           {"repeated", tft::apply_buckets(inputs["x"], {1, 1, 2.5})}}};
}

CaseOutputs vocabulary_cases(const Columns& inputs) {
  const Column& x = inputs["x"];
  const auto apply = tft::compute_and_apply_vocabulary;
  return {
      {{"plain", apply(x, {})},
       {"top", apply(x, {.default_value = -7, .top_k = 2})},
       {"hashed", apply(x, {.top_k = 2, .num_oov_buckets = 3, .vocab_filename = "hashed words"})},
       {"frequent", apply(x, {.frequency_threshold = 2, .num_oov_buckets = 1})},
       {"none",
        apply(x, {.frequency_threshold = 5000, .num_oov_buckets = 2, .vocab_filename = "none"})}}};
}

CaseOutputs vocabulary_frequencies(const Columns& inputs) {
  const Column& x = inputs["x"];
  tft::vocabulary(x, {.vocab_filename = "frequencies", .store_frequency = true});
  return {{{"y", tft::compute_and_apply_vocabulary(x, {.top_k = 3, .store_frequency = true})}}};
}

CaseOutputs vocabulary_weighted(const Columns& inputs) {
  const Column& x = inputs["x"];
  const Column& w = inputs["w"];
  const auto apply = tft::compute_and_apply_vocabulary;
  return {
      {{"all", apply(x, {.vocab_filename = "all", .store_frequency = true, .weights = w})},
       {"some", apply(x, {.frequency_threshold = 1.75, .vocab_filename = "some", .weights = w})},
       {"top", apply(x, {.top_k = 2, .vocab_filename = "top", .weights = w})}}};
}

CaseOutputs vocabulary_options(const Columns& inputs) {
  const Column& x = inputs["x"];
  const auto apply = tft::compute_and_apply_vocabulary;
  return {{{"fraction", apply(x, {.frequency_threshold = 1.5, .vocab_filename = "b:c  d-e_f.txt"})},
           {"default",
            apply(x, {.default_value = int64_t{1} << 62, .top_k = 1, .vocab_filename = "default"})},
           {"both", apply(x, {.top_k = 2, .frequency_threshold = 3, .vocab_filename = "both"})},
           {"reserved", apply(x, {.top_k = 3,
                                  .vocab_filename = "reserved",
                                  .reserved_tokens = {"<pad>", "c", "zz"}})}}};
}

CaseOutputs vocabulary_of_another_column(const Columns& inputs) {
  const tft::Vocabulary words = tft::vocabulary(inputs["x"], {.vocab_filename = "words"});
  return {{{"x", tft::apply_vocabulary(inputs["x"], words)},
           {"y", tft::apply_vocabulary(inputs["y"], words, {.num_oov_buckets = 2})},
           {"default", tft::apply_vocabulary(inputs["y"], words, {.default_value = 9})}}};
}

CaseOutputs vocabulary_of_ngrams(const Columns& inputs) {
  return {
      {{"y", tft::compute_and_apply_vocabulary(tft::ngrams(tft::split(inputs["x"]), {1, 2}, " "),
                                               {.top_k = 5, .vocab_filename = "ngrams"})}}};
}

CaseOutputs vocabulary_of_floats(const Columns& inputs) {
  return {{{"y", tft::compute_and_apply_vocabulary(inputs["x"])}}};
}

CaseOutputs vocabulary_top_zero(const Columns& inputs) {
  return {{{"y", tft::compute_and_apply_vocabulary(inputs["x"], {.top_k = 0})}}};
}

CaseOutputs vocabulary_negative_threshold(const Columns& inputs) {
  return {{{"y", tft::compute_and_apply_vocabulary(inputs["x"], {.frequency_threshold = -1})}}};
}

CaseOutputs hash_strings(const Columns& inputs) {
  const Column& x = inputs["x"];
  return {{{"fast", tft::hash_strings(x, 10)},
           {"many", tft::hash_strings(x, int64_t{1} << 40)},
           {"strong", tft::hash_strings(x, 1000, {{123, 456}})}}};
}

CaseOutputs hash_strings_of_ints(const Columns& inputs) {
  return {{{"y", tft::hash_strings(inputs["x"], 10)}}};
}

CaseOutputs ngrams(const Columns& inputs) {
  const Column& x = inputs["x"];
  return {{{"one_two", tft::ngrams(x, {1, 2}, "_")},
           {"two_three", tft::ngrams(x, {2, 3}, "")},
           {"three", tft::ngrams(x, {3, 3}, " ")},
           {"to_five", tft::ngrams(x, {1, 5}, "-")}}};
}

CaseOutputs ngrams_of_missing(const Columns& inputs) {
  const Column& x = inputs["x"];
  return {{{"y", tft::ngrams(x, {1, 2}, "_")}, {"bag", tft::bag_of_words(x, {1, 2}, "_")}}};
}

CaseOutputs ngrams_from_zero(const Columns& inputs) {
  return {{{"y", tft::ngrams(inputs["x"], {0, 1}, "_")}}};
}

CaseOutputs bag_of_words(const Columns& inputs) {
  const Column& x = inputs["x"];
  return {
      {{"words", tft::bag_of_words(x, {1, 1}, " ")}, {"two", tft::bag_of_words(x, {1, 2}, "_")}}};
}

CaseOutputs word_count(const Columns& inputs) { return {{{"y", tft::word_count(inputs["x"])}}}; }

CaseOutputs deduplicate(const Columns& inputs) {
  return {{{"y", tft::deduplicate_tensor_per_row(inputs["x"])}}};
}

CaseOutputs tfidf(const Columns& inputs) {
  const Column words = tft::split(inputs["x"]);
  const auto apply = tft::compute_and_apply_vocabulary;
  const Column all = apply(words, {.vocab_filename = "all"});
  const Column few = apply(words, {.top_k = 2, .num_oov_buckets = 1, .vocab_filename = "few"});
  const Column lost = apply(words, {.top_k = 2, .vocab_filename = "lost"});
  CaseOutputs outputs;
  const auto add = [&outputs](const std::string& name, const tft::Tfidf& tfidf) {
    outputs.columns[name + "_ids"] = tfidf.indices;
    outputs.columns[name + "_weights"] = tfidf.weights;
  };
  add("smooth", tft::tfidf(all, 12));
  add("few", tft::tfidf(few, 3));
  add("raw", tft::tfidf(all, 12, {.smooth = false}));
  add("lost", tft::tfidf(lost, 2));
  return outputs;
}

CaseOutputs histogram(const Columns& inputs) {
  CaseOutputs outputs;
  const auto keep = [&outputs](const std::string& name, const tft::Histogram& histogram) {
    outputs.keep(name + "_counts", histogram.counts);
    outputs.keep(name + "_boundaries", histogram.boundaries);
  };
  keep("unit", tft::histogram(inputs["x"]));
  keep("given", tft::histogram(inputs["x"], {1, 2, 3}));
  keep("many", tft::histogram(inputs["x"], {0, 1, 2, 3, 4}));
  return outputs;
}

CaseOutputs histogram_of_range(const Columns& inputs) {
  const tft::Histogram histogram = tft::histogram(inputs["x"], 5);
  CaseOutputs outputs;
  outputs.keep("counts", histogram.counts);
  outputs.keep("boundaries", histogram.boundaries);
  return outputs;
}

CaseOutputs count_per_key(const Columns& inputs) {
  const tft::KeyCounts counted = tft::count_per_key(inputs["x"]);
  CaseOutputs outputs;
  outputs.keep("keys", counted.keys);
  outputs.keep("counts", counted.counts);
  return outputs;
}

CaseOutputs nothing(const Columns&) { return {}; }

}  // namespace

void CaseOutputs::keep(const std::string& name, const Column& statistic) {
  tft::keep_statistic(name, statistic);
  statistics.push_back(name);
}

const std::map<std::string, CaseFunction>& case_functions() {
  static const std::map<std::string, CaseFunction> functions = {
      {"analyzers", analyzers},
      {"analyzers_elementwise", analyzers_elementwise},
      {"apply_buckets", apply_buckets},
      {"bag_of_words", bag_of_words},
      {"bucketize", bucketize},
      {"bucketize_elementwise", bucketize_elementwise},
      {"bucketize_none", bucketize_none},
      {"bucketize_strings", bucketize_strings},
      {"bucketize_weighted", bucketize_weighted},
      {"count_per_key", count_per_key},
      {"deduplicate", deduplicate},
      {"hash_strings", hash_strings},
      {"hash_strings_of_ints", hash_strings_of_ints},
      {"histogram", histogram},
      // Cohort has one function for both.
      {"histogram_categorical", count_per_key},
      {"histogram_of_range", histogram_of_range},
      {"mean_of_strings", mean_of_strings},
      {"ngrams", ngrams},
      {"ngrams_from_zero", ngrams_from_zero},
      {"ngrams_of_missing", ngrams_of_missing},
      {"nothing", nothing},
      {"quantiles", quantiles},
      {"quantiles_elementwise", quantiles_elementwise},
      {"quantiles_of_many", quantiles},
      {"quantiles_weighted", quantiles_weighted},
      {"scale", scale},
      {"scale_backwards", scale_backwards},
      {"scale_elementwise", scale_elementwise},
      {"scale_in_two_phases", scale_in_two_phases},
      {"tfidf", tfidf},
      {"vocabulary_cases", vocabulary_cases},
      {"vocabulary_frequencies", vocabulary_frequencies},
      {"vocabulary_negative_threshold", vocabulary_negative_threshold},
      {"vocabulary_of_another_column", vocabulary_of_another_column},
      {"vocabulary_of_floats", vocabulary_of_floats},
      {"vocabulary_of_ngrams", vocabulary_of_ngrams},
      {"vocabulary_options", vocabulary_options},
      {"vocabulary_top_zero", vocabulary_top_zero},
      {"vocabulary_weighted", vocabulary_weighted},
      {"word_count", word_count},
  };
  return functions;
}

}  // namespace cohort::interop
