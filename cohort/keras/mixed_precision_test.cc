// Layers of mixed precision: what they compute in, what they keep, what is written of them.
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras {
namespace {

using mixed_precision::global_policy;
using mixed_precision::Policy;
using mixed_precision::set_global_policy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DType kHalf = DType::Half;
constexpr DType kBFloat16 = DType::BFloat16;

// The global policy while it lives.
class ScopedPolicy {
 public:
  explicit ScopedPolicy(const Policy& policy) { set_global_policy(policy); }
  ~ScopedPolicy() { set_global_policy(std::nullopt); }
};

TEST(Policy, HasADtypeToComputeInAndOneOfVariables) {
  const Policy mixed("mixed_bfloat16");
  EXPECT_EQ(mixed.compute_dtype(), kBFloat16);
  EXPECT_EQ(mixed.variable_dtype(), float32);
  EXPECT_EQ(mixed.name(), "mixed_bfloat16");
  EXPECT_EQ(Policy("mixed_float16").compute_dtype(), kHalf);
  EXPECT_EQ(Policy(float64), Policy("float64"));
  EXPECT_FALSE(Policy("float16").is_mixed());
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Policy("mixed_float61"); }),
              HasSubstr("mixed_float16"));
}

TEST(GlobalPolicy, IsThatOfLayersWithoutOne) {
  EXPECT_EQ(global_policy(), Policy("float32"));
  {
    const ScopedPolicy mixed("mixed_bfloat16");
    EXPECT_EQ(layers::Dense(2).dtype_policy(), Policy("mixed_bfloat16"));
    EXPECT_EQ(layers::Dense(2, {.dtype = float64}).compute_dtype(), float64);
    EXPECT_EQ(layers::Flatten({.dtype = "float32"}).compute_dtype(), float32);
  }
  {
    const Float64 by_floatx;
    EXPECT_EQ(layers::Dense(2).dtype_policy(), Policy(float64));
  }
  EXPECT_THAT(thrown<InvalidArgumentError>([] { set_global_policy("int32"); }),
              HasSubstr("'int32'"));
}

TEST(MixedLayer, ComputesInItsDtypeAndKeepsItsWeights) {
  const layers::Dense dense(3, {.dtype = "mixed_bfloat16"});
  const Tensor x = at::randn({4, 5});
  GradientTape tape;
  const Tensor y = dense(x);
  EXPECT_EQ(y.scalar_type(), kBFloat16);
  const auto variables = dense.trainable_variables();
  EXPECT_EQ(variables[0].dtype(), float32);
  EXPECT_EQ(variables[0].value().scalar_type(), float32) << "outside of the call";
  const auto gradients = tape.gradient(y.sum(), variables);
  EXPECT_EQ(gradients[0].scalar_type(), float32);
  const Tensor expected = x.to(kBFloat16).to(float32).sum(0).unsqueeze(1).expand({5, 3});
  EXPECT_LT((gradients[0] - expected).abs().max().item<double>(), 0.05);
}

// y = x w, with whatever dtype call gets.
class Scaled : public layers::Layer {
 public:
  explicit Scaled(layers::LayerOptions options, layers::WeightOptions weight = {})
      : Layer(std::move(options)), weight_options_(std::move(weight)) {}
  std::vector<DType> seen;

 protected:
  void build(const std::vector<Shape>&) override {
    weight_options_.initializer = "ones";
    weight_ = add_weight("w", {}, weight_options_);
  }
  Tensor call(const Tensor& x, const CallOptions&) override {
    seen = {x.scalar_type(), weight_.value().scalar_type()};
    return x * weight_;
  }

 private:
  layers::WeightOptions weight_options_;
  Variable weight_;
};

std::vector<DType> seen_by(const layers::LayerOptions& options, const Tensor& x,
                           const layers::WeightOptions& weight = {}) {
  const auto layer = std::make_shared<Scaled>(options, weight);
  (*layer)(x);
  return layer->seen;
}

TEST(MixedLayer, CastsInputsAndWeightsOfLayersOfTheProgram) {
  const Tensor wide = at::zeros({2}, float64);
  EXPECT_THAT(seen_by({.dtype = "mixed_bfloat16"}, wide), ElementsAre(kBFloat16, kBFloat16));
  EXPECT_THAT(seen_by({.dtype = "bfloat16"}, wide), ElementsAre(kBFloat16, kBFloat16));
  EXPECT_THAT(seen_by({}, wide), ElementsAre(float32, float32));
  EXPECT_THAT(seen_by({.dtype = "mixed_bfloat16"}, at::zeros({2}, int64)),
              ElementsAre(int64, kBFloat16));
  EXPECT_THAT(seen_by({.dtype = "mixed_bfloat16", .autocast = false}, wide),
              ElementsAre(float64, kBFloat16));
  EXPECT_THAT(seen_by({.dtype = "mixed_bfloat16"}, wide, {.autocast = false}),
              ElementsAre(kBFloat16, float32));
}

TEST(MixedLayer, OfAnotherPolicyInsideComputesInItsOwn) {
  const ScopedPolicy mixed("mixed_bfloat16");
  const Sequential model({layers::Dense(4), layers::Dense(2, {.dtype = float32})});
  EXPECT_EQ(model(at::zeros({1, 3})).scalar_type(), float32);
  EXPECT_EQ(model.dtype_policy(), Policy("mixed_bfloat16"));
  const SymbolicTensor x = Input({3});
  EXPECT_EQ(x.dtype(), float32);
  EXPECT_EQ(layers::Dense(4)(x).dtype(), kBFloat16);
}

TEST(MixedLayer, NormalizationsComputeInFloat32) {
  const Tensor x = at::randn({64, 8}) * 0.01 + 10;
  for (const layers::LayerHandle& layer :
       {layers::LayerHandle(layers::BatchNormalization({.dtype = "mixed_bfloat16"})),
        layers::LayerHandle(layers::LayerNormalization({.dtype = "mixed_bfloat16"}))}) {
    const Tensor rounded = x.to(kBFloat16);
    const Tensor y = layer(rounded, {.training = true});
    EXPECT_EQ(y.scalar_type(), kBFloat16);
    for (const Variable& variable : layer.variables()) EXPECT_EQ(variable.dtype(), float32);
    EXPECT_LT(y.to(float32).mean().abs().item<double>(), 0.01) << layer.class_name();
  }
  const layers::BatchNormalization pure({.dtype = "bfloat16"});
  EXPECT_EQ(pure(x).scalar_type(), kBFloat16);
  EXPECT_EQ(pure.variables()[0].dtype(), float32) << "as in Keras";
}

TEST(MixedLayer, OfIdsLosesNone) {
  const layers::Embedding embedding(1000, 2, {.dtype = "mixed_bfloat16"});
  const Tensor ids = numbers({257, 999}, {1, 2});  // bfloat16 has no 257
  const Tensor rows = embedding(ids);
  EXPECT_EQ(rows.scalar_type(), kBFloat16);
  const Tensor table = embedding.variables()[0].value();
  EXPECT_TRUE(rows[0][0].equal(table[257].to(kBFloat16)));
}

TEST(MixedLayer, EveryOneRunsAndTrains) {
  const ScopedPolicy mixed("mixed_bfloat16");
  namespace l = layers;
  const std::vector<std::pair<std::vector<l::LayerHandle>, Tensor>> cases = {
      {{l::Conv2D(4, 3, {.activation = "relu"}), l::MaxPooling2D(), l::BatchNormalization(),
        l::Conv2DTranspose(3, 2), l::AveragePooling2D(), l::Dropout(0.25), l::Flatten(),
        l::Dense(2)},
       at::randn({4, 9, 9, 3})},
      {{l::Conv1D(4, 2, {.padding = "same"}), l::MaxPooling1D(), l::GlobalAveragePooling1D(),
        l::Dense(2)},
       at::randn({4, 8, 3})},
      {{l::LSTM(5, {.return_sequences = true}), l::Bidirectional(l::GRU(3)), l::Dense(2)},
       at::randn({4, 6, 3})},
      {{l::SimpleRNN(5), l::Reshape({5, 1}), l::GlobalMaxPooling1D(), l::Dense(2)},
       at::randn({4, 6, 3})},
      {{l::Embedding(9, 4, {.mask_zero = true}), l::LSTM(3), l::Dense(2)},
       at::randint(9, {4, 6}, at::kLong)},
      {{l::Embedding(9, 4), l::GlobalAveragePooling1D(), l::Dense(2)},
       at::randint(9, {4, 6}, at::kLong)},
      {{l::Rescaling(0.5), l::LayerNormalization(), l::ReLU(6), l::LeakyReLU(), l::ELU(),
        l::Activation("gelu"), l::Dense(8, {.activation = "selu"}), l::Activation("softplus"),
        l::Activation("mish"), l::Activation("hard_sigmoid"), l::Dense(2)},
       at::randn({4, 7})},
  };
  for (const auto& [chain, x] : cases) {
    const Sequential model(chain);
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.01}), .loss = "mse"});
    const double loss = model.train_on_batch(x, at::zeros({4, 2}))["loss"];
    EXPECT_TRUE(std::isfinite(loss));
    EXPECT_EQ(model(x).scalar_type(), kBFloat16);
    for (const Variable& variable : model.variables()) EXPECT_EQ(variable.dtype(), float32);
  }
}

TEST(MixedLayer, AttentionAndMergingRun) {
  const ScopedPolicy mixed("mixed_bfloat16");
  const SymbolicTensor x = Input({5, 8});
  const SymbolicTensor attended =
      layers::MultiHeadAttention(2, 4, {.dropout = 0.5, .use_causal_mask = true})({x, x});
  const SymbolicTensor sum = layers::LayerNormalization()(layers::Add()({x, attended}));
  const Functional model(x, layers::Dense(2)(layers::Flatten()(sum)));
  model.compile({.optimizer = "adam", .loss = "mse"});
  EXPECT_TRUE(std::isfinite(model.train_on_batch(at::randn({4, 5, 8}), at::zeros({4, 2}))["loss"]));
}

TEST(MixedLayer, InFloat16IsRoundedToItOnTheCpu) {
  const layers::Dense dense(1, {.kernel_initializer = "ones", .dtype = "mixed_float16"});
  const Tensor x = numbers({2048, 1, 1}, {1, 3});
  const Tensor y = dense(x);
  EXPECT_EQ(y.scalar_type(), kHalf);
  EXPECT_EQ(y.item<double>(), 2050) << "added in float32";
  EXPECT_TRUE(std::isinf(dense(x * 40).item<double>())) << "what float16 does not hold";
  const layers::Dense pure(1, {.dtype = "float16"});
  EXPECT_EQ(pure(x).scalar_type(), kHalf);
  EXPECT_EQ(pure.variables()[0].dtype(), kHalf);
}

TEST(MixedLoss, IsComputedInFloat32) {
  const Tensor logits = at::randn({8, 5}).to(kBFloat16);
  const Tensor labels = at::randint(5, {8}, at::kLong);
  const losses::SparseCategoricalCrossentropy loss({.from_logits = true});
  const Tensor value = loss(labels, logits);
  EXPECT_EQ(value.scalar_type(), float32);
  EXPECT_EQ(value.item<double>(), loss(labels, logits.to(float32)).item<double>());
  const losses::MeanSquaredError mse;
  EXPECT_EQ(mse(logits.to(float32), logits).scalar_type(), float32);
  metrics::MeanAbsoluteError error;
  error.update_state(logits.to(float32) + 1, logits);
  EXPECT_NEAR(error.result().item<double>(), 1, 1e-6);
}

TEST(MixedLoss, OfASaturatedSoftmaxKnowsItsLogits) {
  const layers::Dense dense(
      2, {.activation = "softmax", .kernel_initializer = "ones", .dtype = "mixed_bfloat16"});
  const losses::SparseCategoricalCrossentropy loss;
  dense(at::zeros({1, 1}));
  dense.set_weights({numbers({50, -50}, {1, 2}), numbers({0, 0})});
  GradientTape tape;
  const Tensor value = loss(at::zeros({1}, int64) + 1, dense(at::zeros({1, 1}) + 1));
  EXPECT_NEAR(value.item<double>(), 100, 1e-3);
  EXPECT_NE(tape.gradient(value, dense.trainable_variables())[0].abs().sum().item<double>(), 0);
}

TEST(MixedModel, IsWrittenAsKerasDoesAndReadAgain) {
  const layers::Dense dense(2, {.dtype = "mixed_bfloat16"});
  EXPECT_EQ(dense.get_config()->get_config("dtype").json(),
            R"({"class_name":"Policy","config":{"name":"mixed_bfloat16"},)"
            R"("module":"keras.mixed_precision","registered_name":null})");
  EXPECT_EQ(layers::Flatten({.dtype = "float16"}).get_config()->get_string("dtype"), "float16");
  const ScopedPolicy mixed("mixed_float16");
  const Sequential model({Input({3}), layers::Dense(4), layers::Dropout(0.5),
                          layers::Activation("softmax", {.dtype = "float32"})});
  set_global_policy(std::nullopt);
  const ModelHandle copy = models::model_from_json(model.to_json());
  EXPECT_EQ(copy.get_layer(0).dtype_policy(), Policy("mixed_float16"));
  EXPECT_EQ(copy.get_layer(1).dtype_policy(), Policy("mixed_float16"));
  EXPECT_EQ(copy.get_layer(2).dtype_policy(), Policy("float32"));
  EXPECT_EQ(copy.to_json(), model.to_json());
}

TEST(MixedModel, OnTwoReplicasIsThatOnOne) {
  const ScopedPolicy mixed("mixed_bfloat16");
  const Tensor x = at::randn({32, 6});
  const Tensor y = x.slice(1, 0, 2) * 2;
  std::vector<std::vector<double>> curves;
  for (const int replicas : {1, 2}) {
    utils::set_random_seed(3);
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(8, {.activation = "relu"}), layers::Dense(2)});
    model.compile({.optimizer = optimizers::Adam({.learning_rate = 0.01}), .loss = "mse"});
    const History history =
        model.fit(x, y, {.batch_size = 8, .epochs = 5, .verbose = 0, .shuffle = false});
    curves.push_back(history["loss"]);
  }
  EXPECT_LT(curves[0].back(), curves[0].front());
  for (size_t i = 0; i < curves[0].size(); ++i) {
    EXPECT_NEAR(curves[0][i], curves[1][i], 0.02 * curves[0][i]);
  }
}

}  // namespace
}  // namespace cohort::keras
