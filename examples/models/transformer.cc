#include "models/transformer.h"

#include "models/transformer_blocks.h"
#include "models/translations.h"

namespace models {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::keras::SymbolicTensor;

tf::keras::ModelHandle make_transformer(const TransformerConfig& config) {
  const BlockOptions block = {
      .heads = config.heads, .inner = config.inner, .dropout = config.dropout};
  EmbeddingsOptions embeddings = {.vocabulary = translation_vocabulary(config.words),
                                  .length = config.longest,
                                  .features = config.features,
                                  .padded = true};
  const auto source = tf::keras::Input({config.longest}, {.name = "source", .dtype = tf::int64});
  const auto target =
      tf::keras::Input({config.longest + 1}, {.name = "target", .dtype = tf::int64});
  SymbolicTensor encoded = normalize_and_drop(block, embed(embeddings, source));
  for (int64_t i = 0; i < config.layers; ++i) encoded = encoder_block(block, encoded);

  // A decoder looks back alone: padding behind a sentence changes nothing, and its labels weigh 0.
  embeddings.length = config.longest + 1;
  embeddings.padded = false;
  SymbolicTensor x = normalize_and_drop(block, embed(embeddings, target));
  for (int64_t i = 0; i < config.layers; ++i) x = decoder_block(block, x, encoded);
  return tf::keras::Functional({{"source", source}, {"target", target}},
                               layers::Dense(embeddings.vocabulary)(x));
}

Example transformer_example(const TransformerConfig& config) {
  return {.name = "transformer",
          .description = "Translation by attention alone.",
          .train_rows = 2'048,
          .test_rows = 256,
          .epochs = 4,
          .batch = 32,
          .make_optimizer = [] { return tf::keras::optimizers::Adam({.learning_rate = 3e-3}); },
          .make_model = [config] { return make_transformer(config); },
          .make_rows =
              [config](int64_t rows, uint64_t seed) {
                return make_translations(
                    rows, {.words = config.words, .longest = config.longest, .seed = seed});
              },
          .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
          .metric = "accuracy"};
}

}  // namespace models
