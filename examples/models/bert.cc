#include "models/bert.h"

#include <memory>
#include <optional>

#include "models/masked_sentences.h"
#include "models/transformer_blocks.h"

namespace models {
namespace {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::Structure;
using tf::Tensor;
using tf::keras::SymbolicTensor;

// A tuple of [batch, steps, features] and places, int64 [batch, n] -> [batch, n, features].
class AtPlaces : public layers::Layer {
 public:
  std::optional<tf::keras::Config> get_config() const override { return tf::keras::Config(); }

 protected:
  Structure call(const Structure& inputs, const tf::keras::CallOptions&) override {
    const Tensor x = inputs[0].tensor(), places = inputs[1].tensor();
    return x.gather(1, places.unsqueeze(-1).expand({-1, -1, x.size(2)}));
  }
};

constexpr int64_t kSpecialTokens = 4;

BlockOptions block_options(const BertConfig& config) {
  return {.heads = config.heads,
          .inner = config.inner,
          .activation = "gelu",
          .dropout = config.dropout,
          .epsilon = 1e-12};
}

}  // namespace

tf::keras::ModelHandle make_bert(const BertConfig& config) {
  const int64_t vocabulary = config.words + kSpecialTokens;
  const BlockOptions block = block_options(config);
  const auto tokens = tf::keras::Input({config.length}, {.name = "tokens", .dtype = tf::int64});
  const auto segments = tf::keras::Input({config.length}, {.name = "segments", .dtype = tf::int64});
  const auto places = tf::keras::Input({config.masked}, {.name = "places", .dtype = tf::int64});

  const SymbolicTensor embedded = embed({.vocabulary = vocabulary,
                                         .length = config.length,
                                         .features = config.features,
                                         .padded = true},
                                        tokens);
  SymbolicTensor x = normalize_and_drop(
      block, layers::Add()({embedded, layers::Embedding(2, config.features)(segments)}));
  for (int64_t layer = 0; layer < config.layers; ++layer) x = encoder_block(block, x);

  const SymbolicTensor masked = layers::LayerHandle(std::make_shared<AtPlaces>())({x, places});
  const SymbolicTensor hidden = layers::LayerNormalization({.epsilon = block.epsilon})(
      layers::Dense(config.features, {.activation = block.activation})(masked));
  return tf::keras::Functional({{"tokens", tokens}, {"segments", segments}, {"places", places}},
                               layers::Dense(vocabulary)(hidden));
}

Example bert_example(const BertConfig& config) {
  return {.name = "bert",
          .description = "BERT's encoder, which names the words that are masked in two sentences.",
          .train_rows = 2'048,
          .test_rows = 256,
          .epochs = 4,
          .batch = 32,
          .make_optimizer = [] { return tf::keras::optimizers::Adam({.learning_rate = 2e-3}); },
          .make_model = [config] { return make_bert(config); },
          .make_rows =
              [config](int64_t rows, uint64_t seed) {
                return make_masked_sentences(rows, {.words = config.words,
                                                    .length = config.length,
                                                    .masked = config.masked,
                                                    .seed = seed});
              },
          .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
          .metric = "accuracy"};
}

}  // namespace models
