#include "cohort/keras/layers/integer_lookup.h"

#include <memory>
#include <utility>

#include "cohort/keras/layers/lookup/index_lookup.h"

namespace cohort::keras::layers {
namespace {

using Impl = internal::IndexLookup<int64_t>;

Impl& impl(const IntegerLookup& layer) { return static_cast<Impl&>(*layer.get()); }

std::shared_ptr<Impl> make_layer(IntegerLookupOptions options) {
  return std::make_shared<Impl>(
      internal::IndexLookupOptions<int64_t>{.class_name = "IntegerLookup",
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

IntegerLookup::IntegerLookup(IntegerLookupOptions options)
    : LayerHandle(make_layer(std::move(options))) {}

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
