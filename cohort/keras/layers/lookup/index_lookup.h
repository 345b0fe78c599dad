// What StringLookup and IntegerLookup have in common, which is nearly everything.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/keras/layers/base/layer_handle.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/layers/lookup/lookup_state.h"
#include "cohort/keras/layers/lookup/token_counter.h"
#include "cohort/keras/layers/lookup/token_table.h"
#include "cohort/keras/layers/preprocessing/adapt_options.h"
#include "cohort/keras/layers/preprocessing/output_mode.h"

namespace cohort::internal {

// StringLookupOptions for either type of token.
template <class Key>
struct IndexLookupOptions {
  std::string class_name;
  VocabularySource vocabulary;
  SpecialTokens<Key> special;  // but for mask_has_index
  std::optional<int64_t> max_tokens;
  std::vector<double> idf_weights;
  std::string output_mode;
  bool pad_to_max_tokens = false;
  std::optional<DType> dtype;
  std::string name;
};

// Key is std::string_view or int64_t. Thread safety: calls from any thread; adapt and
// set_vocabulary from one thread while nobody calls.
template <class Key>
class IndexLookup final : public keras::layers::Layer, public VocabularyKeeper {
 public:
  using Token = typename SpecialTokens<Key>::Token;

  explicit IndexLookup(IndexLookupOptions<Key> options);

  void set_vocabulary(const VocabularySource& source, const std::vector<double>& idf_weights);
  void adapt(const data::Dataset& dataset, const keras::layers::AdaptOptions& options);
  void adapt(const Leaf& data, const keras::layers::AdaptOptions& options);
  std::vector<Token> get_vocabulary(bool include_special_tokens) const;
  int64_t vocabulary_size() const;

  // Has the vocabulary that was given; what was learned is in checkpoints.
  std::optional<keras::Config> get_config() const override;
  std::vector<train::TrackableChild> checkpoint_children() override;
  bool keeps_weights() const override { return !state_.empty(); }

 protected:
  Structure call(const Structure& inputs, const keras::CallOptions& options) override;

 private:
  using Table = TokenTable<Key>;

  void check(const IndexLookupOptions<Key>& options) const;
  std::string where() const;
  // Indices of the output, or the output itself when inverting.
  Tensor find(const Leaf& input) const;
  Leaf invert(const Leaf& input) const;
  Encoding encoding() const;
  // The vocabulary that calls use, or an error; a layer that is traced may have none yet.
  const Table& table() const;

  // Data: a Dataset or a Leaf.
  template <class Data>
  void learn(const Data& data, const keras::layers::AdaptOptions& options);
  void count(TokenCounter<Key>& counter, const Leaf& data) const;
  void finish_adapt(const TokenCounter<Key>& counter);
  Tensor learned_weights(const std::vector<int64_t>& documents, int64_t num_documents) const;
  Tensor given_weights(const std::vector<double>& weights, bool with_special_tokens) const;
  void install(std::shared_ptr<const Table> table, Tensor idf_weights);
  void check_size(int64_t size) const;

  SpecialTokens<Key> special_;
  std::optional<int64_t> max_tokens_;
  OutputMode mode_;
  bool pad_to_max_tokens_;
  DType output_dtype_;
  bool static_vocabulary_;
  std::shared_ptr<const Table> table_;
  Tensor idf_weights_;  // with kTfIdf: float32 [depth]
  LookupState state_;
};

// Takes StringLookupOptions or IntegerLookupOptions, which differ only in the type of a token.
template <class Key, class PublicOptions>
std::shared_ptr<IndexLookup<Key>> make_index_lookup(std::string class_name, PublicOptions options) {
  return std::make_shared<IndexLookup<Key>>(
      IndexLookupOptions<Key>{.class_name = std::move(class_name),
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

}  // namespace cohort::internal
