#include "cohort/keras/layers/string_lookup.h"

#include <memory>
#include <utility>

#include "cohort/keras/layers/lookup/index_lookup.h"

namespace cohort::keras::layers {
namespace {

using Impl = internal::IndexLookup<std::string_view>;

Impl& impl(const StringLookup& layer) { return static_cast<Impl&>(*layer.get()); }

std::shared_ptr<Impl> make_layer(StringLookupOptions options) {
  return std::make_shared<Impl>(internal::IndexLookupOptions<std::string_view>{
      .class_name = "StringLookup",
      .vocabulary = options.vocabulary.source(),
      .special = {.mask = std::move(options.mask_token),
                  .num_oov_indices = options.num_oov_indices,
                  .oov = std::move(options.oov_token),
                  .invert = options.invert},
      .max_tokens = options.max_tokens,
      .idf_weights = std::move(options.idf_weights),
      .output_mode = std::move(options.output_mode),
      .pad_to_max_tokens = options.pad_to_max_tokens,
      .dtype = options.dtype,
      .name = std::move(options.name)});
}

}  // namespace

StringLookup::StringLookup(StringLookupOptions options)
    : LayerHandle(make_layer(std::move(options))) {}

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
