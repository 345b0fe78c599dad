#include "cohort/keras/layers/lookup/integer_lookup.h"

#include <utility>

#include "cohort/keras/layers/lookup/index_lookup.h"
#include "cohort/keras/layers/lookup/read_lookup.h"

namespace cohort::keras::layers {
namespace {

using OfIntegers = internal::IndexLookup<int64_t>;

OfIntegers& impl(const IntegerLookup& layer) { return static_cast<OfIntegers&>(*layer.get()); }

}  // namespace

IntegerLookup::IntegerLookup(IntegerLookupOptions options)
    : LayerHandle(internal::make_index_lookup<int64_t>("IntegerLookup", std::move(options))) {}

void IntegerLookup::set_vocabulary(const IntegerVocabulary& vocabulary,
                                   const std::vector<double>& idf_weights) const {
  impl(*this).set_vocabulary(vocabulary.source(), idf_weights);
}

void IntegerLookup::adapt(const data::Dataset& dataset, const AdaptOptions& options) const {
  impl(*this).adapt(dataset, options);
}

void IntegerLookup::adapt(const Tensor& tokens, const AdaptOptions& options) const {
  impl(*this).adapt(Leaf(tokens), options);
}

std::vector<int64_t> IntegerLookup::get_vocabulary(bool include_special_tokens) const {
  return impl(*this).get_vocabulary(include_special_tokens);
}

int64_t IntegerLookup::vocabulary_size() const { return impl(*this).vocabulary_size(); }

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_integer_lookup(FieldReader& field) {
  return keras::layers::IntegerLookup(
      read_lookup_options<int64_t, keras::layers::IntegerLookupOptions>(field));
}

}  // namespace cohort::internal
