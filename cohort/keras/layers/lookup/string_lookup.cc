#include "cohort/keras/layers/lookup/string_lookup.h"

#include <utility>

#include "cohort/keras/layers/lookup/index_lookup.h"
#include "cohort/keras/layers/lookup/read_lookup.h"

namespace cohort::keras::layers {
namespace {

using OfStrings = internal::IndexLookup<std::string_view>;

OfStrings& impl(const StringLookup& layer) { return static_cast<OfStrings&>(*layer.get()); }

}  // namespace

StringLookup::StringLookup(StringLookupOptions options)
    : LayerHandle(
          internal::make_index_lookup<std::string_view>("StringLookup", std::move(options))) {}

void StringLookup::set_vocabulary(const StringVocabulary& vocabulary,
                                  const std::vector<double>& idf_weights) const {
  impl(*this).set_vocabulary(vocabulary.source(), idf_weights);
}

void StringLookup::adapt(const data::Dataset& dataset, const AdaptOptions& options) const {
  impl(*this).adapt(dataset, options);
}

void StringLookup::adapt(const StringTensor& tokens, const AdaptOptions& options) const {
  impl(*this).adapt(Leaf(tokens), options);
}

std::vector<std::string> StringLookup::get_vocabulary(bool include_special_tokens) const {
  return impl(*this).get_vocabulary(include_special_tokens);
}

int64_t StringLookup::vocabulary_size() const { return impl(*this).vocabulary_size(); }

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_string_lookup(FieldReader& field) {
  return keras::layers::StringLookup(
      read_lookup_options<std::string, keras::layers::StringLookupOptions>(field));
}

}  // namespace cohort::internal
