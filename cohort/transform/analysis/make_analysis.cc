// Reads an analysis from its kind and attributes.

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/transform/analysis/analyses.h"
#include "cohort/transform/analysis/attributes.h"

namespace cohort::internal {
namespace {

template <class Options>
AnalysisPtr with_numeric(AttributeReader& reader, AnalysisPtr (*make)(const Options&)) {
  return make(reader.numeric());
}

AnalysisPtr read_quantiles(AttributeReader& reader) {
  const QuantilesOptions defaults;
  return quantiles_analysis(
      {.num_buckets = reader.whole("num_buckets").value_or(defaults.num_buckets),
       .epsilon = reader.number("epsilon").value_or(defaults.epsilon),
       .weighted = reader.flag("weighted", false),
       .reduce_instance_dims = reader.flag("reduce_instance_dims", true)});
}

AnalysisPtr read_vocabulary(AttributeReader& reader) {
  return vocabulary_analysis({.top_k = reader.whole("top_k"),
                              .frequency_threshold = reader.number("frequency_threshold"),
                              .weighted = reader.flag("weighted", false),
                              .store_frequency = reader.flag("store_frequency", false),
                              .reserved_tokens = reader.texts("reserved_tokens")});
}

struct Kind {
  std::string_view name;
  AnalysisPtr (*read)(AttributeReader&);
};
constexpr Kind kKinds[] = {
    {"bucket_counts",
     [](AttributeReader& reader) {
       return bucket_counts_analysis(reader.whole("num_buckets").value_or(0));
     }},
    {"count_per_key", [](AttributeReader&) { return count_per_key_analysis(); }},
    {"document_frequencies", [](AttributeReader&) { return document_frequencies_analysis(); }},
    {"mean_and_variance",
     [](AttributeReader& reader) { return with_numeric(reader, mean_and_variance_analysis); }},
    {"min_and_max",
     [](AttributeReader& reader) { return with_numeric(reader, min_and_max_analysis); }},
    {"quantiles", read_quantiles},
    {"size", [](AttributeReader& reader) { return with_numeric(reader, size_analysis); }},
    {"sum", [](AttributeReader& reader) { return with_numeric(reader, sum_analysis); }},
    {"vocabulary", read_vocabulary},
};

}  // namespace

AnalysisPtr make_analysis(std::string_view kind, const Attributes& attributes) {
  std::string known;
  for (const Kind& candidate : kKinds) {
    if (candidate.name == kind) {
      AttributeReader reader(kind, attributes);
      AnalysisPtr analysis = candidate.read(reader);
      reader.finish();
      return analysis;
    }
    known += str(known.empty() ? "" : ", ", candidate.name);
  }
  throw InvalidArgumentError(
      str("there is no analysis ", quoted(kind), "; those that there are: ", known));
}

}  // namespace cohort::internal
