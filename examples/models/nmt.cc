#include "models/nmt.h"

#include "models/translations.h"

namespace models {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::keras::SymbolicTensor;

tf::keras::ModelHandle make_nmt(const NmtConfig& config) {
  const int64_t vocabulary = translation_vocabulary(config.words);
  const auto source = tf::keras::Input({config.longest}, {.name = "source", .dtype = tf::int64});
  const auto target =
      tf::keras::Input({config.longest + 1}, {.name = "target", .dtype = tf::int64});

  // Padding is passed over, and nobody attends to it.
  const SymbolicTensor words =
      layers::Embedding(vocabulary, config.features, {.mask_zero = true})(source);
  const SymbolicTensor encoded = layers::Bidirectional(
      layers::GRU(config.units, {.return_sequences = true}), {.merge_mode = "sum"})(words);

  // A decoder goes forward: padding behind a sentence changes nothing, and its labels weigh 0.
  const SymbolicTensor said = layers::Embedding(vocabulary, config.features)(target);
  const SymbolicTensor state = layers::GRU(config.units, {.return_sequences = true})(said);
  const layers::MultiHeadAttention attention(1, config.units, {.dropout = config.dropout});
  const SymbolicTensor attended =
      layers::LayerNormalization()(layers::Add()({state, attention({state, encoded})}));
  return tf::keras::Functional({{"source", source}, {"target", target}},
                               layers::Dense(vocabulary)(attended));
}

Example nmt_example(const NmtConfig& config) {
  return {.name = "nmt",
          .description = "Translation by recurrent layers with attention.",
          .train_rows = 2'048,
          .test_rows = 256,
          .epochs = 4,
          .batch = 32,
          .make_optimizer = [] { return tf::keras::optimizers::Adam({.learning_rate = 5e-3}); },
          .make_model = [config] { return make_nmt(config); },
          .make_rows =
              [config](int64_t rows, uint64_t seed) {
                return make_translations(
                    rows, {.words = config.words, .longest = config.longest, .seed = seed});
              },
          .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
          .metric = "accuracy"};
}

}  // namespace models
