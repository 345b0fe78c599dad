#include "models/transformer_blocks.h"

#include "models/position_embedding.h"

namespace models {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::keras::SymbolicTensor;

namespace {

SymbolicTensor add_and_normalize(const BlockOptions& options, const SymbolicTensor& x,
                                 const SymbolicTensor& part) {
  const SymbolicTensor dropped = layers::Dropout(options.dropout)(part);
  return layers::LayerNormalization({.epsilon = options.epsilon})(layers::Add()({x, dropped}));
}

SymbolicTensor attend(const BlockOptions& options, const SymbolicTensor& queries,
                      const SymbolicTensor& values, bool causal) {
  const layers::MultiHeadAttention attention(
      options.heads, queries.shape().back() / options.heads,
      {.dropout = options.dropout, .use_causal_mask = causal});
  return add_and_normalize(options, queries, attention({queries, values}));
}

SymbolicTensor feed_forward(const BlockOptions& options, const SymbolicTensor& x) {
  const SymbolicTensor inner = layers::Dense(options.inner, {.activation = options.activation})(x);
  return add_and_normalize(options, x, layers::Dense(x.shape().back())(inner));
}

}  // namespace

SymbolicTensor embed(const EmbeddingsOptions& options, const SymbolicTensor& ids) {
  const SymbolicTensor tokens =
      layers::Embedding(options.vocabulary, options.features, {.mask_zero = options.padded})(ids);
  return layers::Add()({tokens, position_embedding(options.length)(tokens)});
}

SymbolicTensor normalize_and_drop(const BlockOptions& options, const SymbolicTensor& x) {
  return layers::Dropout(options.dropout)(
      layers::LayerNormalization({.epsilon = options.epsilon})(x));
}

SymbolicTensor encoder_block(const BlockOptions& options, const SymbolicTensor& x) {
  return feed_forward(options, attend(options, x, x, /*causal=*/false));
}

SymbolicTensor decoder_block(const BlockOptions& options, const SymbolicTensor& x,
                             const SymbolicTensor& encoded) {
  const SymbolicTensor own = attend(options, x, x, /*causal=*/true);
  return feed_forward(options, attend(options, own, encoded, /*causal=*/false));
}

}  // namespace models
