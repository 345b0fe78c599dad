#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/structure/string_tensor.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"

namespace cohort::keras {
namespace {

using layers::LayerHandle;
using models::layer_from_config;
using models::model_from_json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Config, HoldsValuesByName) {
  Config config;
  config.set("units", 3).set("rate", 0.5).set("bias", true).set("name", "a");
  config.set("axes", std::vector<int64_t>{1, 2}).set("words", std::vector<std::string>{"x"});
  Config copy = config;
  copy.set("units", 4).set("inner", config);
  EXPECT_EQ(config.get_int("units"), 3);
  EXPECT_EQ(copy.get_config("inner"), config);
  const Config read = Config::parse(copy.json());
  EXPECT_EQ(read, copy);
  EXPECT_EQ(read.get_double("rate"), 0.5);
  EXPECT_TRUE(read.get_bool("bias"));
  EXPECT_EQ(read.get_string("name"), "a");
  EXPECT_THAT(read.get_ints("axes"), ElementsAre(1, 2));
  EXPECT_THAT(read.get_strings("words"), ElementsAre("x"));
  EXPECT_FALSE(read.contains("other"));
}

TEST(Config, NamesWhatIsMissingOrOfAnotherKind) {
  const Config config = Config().set("units", "many");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { config.get_int("units"); }),
              AllOf(HasSubstr("'units'"), HasSubstr("an integer")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { config.get_int("size"); }), HasSubstr("'size'"));
  EXPECT_THROW(Config::parse("[1]"), InvalidArgumentError);
  EXPECT_THROW(Config::parse("{\"a\": "), InvalidArgumentError);
}

std::vector<LayerHandle> layers_of_all_kinds() {
  const initializers::Initializer seeded = initializers::HeNormal({.seed = 7});
  return {
      layers::Activation("relu", {.activity_regularizer = "l1"}),
      layers::Add(),
      layers::AlphaDropout(0.25, {.noise_shape = {kUnknownDim, 1}, .seed = 2}),
      layers::AdditiveAttention({.use_scale = false, .dropout = 0.5}),
      layers::Attention({.use_scale = true, .score_mode = "concat", .use_causal_mask = true}),
      layers::Average(),
      layers::AveragePooling1D(3, {.strides = 2, .padding = "same"}),
      layers::AveragePooling2D({2, 3}),
      layers::BatchNormalization({.momentum = 0.5, .synchronized = true}),
      layers::Bidirectional(layers::GRU(3, {.return_sequences = true, .recurrent_dropout = 0.5}),
                            {.merge_mode = "sum"}),
      layers::Bidirectional(layers::LSTM(3, {.dropout = 0.5, .name = "inside"}),
                            {.merge_mode = std::nullopt}),
      layers::CategoryEncoding(4, {.output_mode = "count", .dtype = int64}),
      layers::Concatenate({.axis = 1}),
      layers::Conv1D(4, 3, {.padding = "causal", .kernel_initializer = seeded}),
      layers::Conv2D(4, {3, 2}, {.strides = 2, .bias_regularizer = regularizers::L1L2(0.1, 0.2)}),
      layers::Conv2DTranspose(4, {3, 2}, {.strides = 2, .padding = "same", .use_bias = false}),
      layers::Conv2DTranspose(4, 3, {.strides = 3, .output_padding = layers::Size2D(1, 2)}),
      layers::Dense(5, {.activation = "tanh",
                        .use_bias = false,
                        .kernel_initializer = initializers::Constant(0.5),
                        .kernel_regularizer = regularizers::L2(1e-5),
                        .dtype = float64,
                        .name = "named"}),
      layers::Activation("mish"),
      layers::Dense(5, {.activation = "hard_sigmoid"}),
      layers::Discretization({.bin_boundaries = {0.1, 2}, .output_mode = "multi_hot"}),
      layers::Discretization({.num_bins = 5, .epsilon = 0.25, .dtype = int32}),
      layers::Dot({2, 1}, {.normalize = true}),
      layers::Dropout(0.25, {.seed = 3}),
      layers::ELU(0.5),
      layers::EinsumDense("ab,bc->ac", {5}, {.bias_axes = "c", .bias_constraint = "non_neg"}),
      layers::EinsumDense("abc,cd->abd", {kUnknownDim, 5},
                          {.activation = "relu", .bias_axes = "d"}),
      layers::Embedding(10, 4, {.embeddings_initializer = initializers::RandomUniform()}),
      layers::Embedding(10, 4, {.mask_zero = true}),
      layers::Flatten(),
      layers::GRU(3, {.reset_after = false, .return_sequences = true}),
      layers::GRUCell(3, {.use_bias = false, .dropout = 0.5, .name = "own"}),
      layers::GlobalAveragePooling1D(),
      layers::GlobalAveragePooling2D(),
      layers::GlobalMaxPooling1D(),
      layers::GlobalMaxPooling2D({.keepdims = true}),
      layers::HashedCrossing(7, {.output_mode = "one_hot"}),
      layers::Hashing(3, {.mask_value = "", .salt = 7, .output_mode = "count"}),
      layers::Hashing(3, {.mask_value = -1, .salt = {-1, 2}, .dtype = int32}),
      layers::InputLayer({3, kUnknownDim}, {.name = "in", .dtype = cohort::string}),
      layers::InputLayer({3}, {.batch_size = 2, .name = "two"}),
      layers::IntegerLookup({.vocabulary = {3, 5}, .mask_token = 0}),
      layers::LSTM(3, {.unit_forget_bias = false, .go_backwards = true}),
      layers::LSTM(3, {.stateful = true}),
      layers::GRU(3, {.kernel_constraint = "non_neg",
                      .recurrent_constraint = constraints::MaxNorm(2),
                      .bias_constraint = "unit_norm"}),
      layers::Bidirectional(layers::LSTM(3),
                            {.backward_layer = layers::GRU(2, {.go_backwards = true})}),
      layers::LayerNormalization({.axis = {1, 2}}),
      layers::LeakyReLU(0.1),
      layers::Masking(-1.),
      layers::MaxPooling1D(),
      layers::MaxPooling2D(3, {.strides = 1}),
      layers::Maximum(),
      layers::Minimum(),
      layers::MultiHeadAttention(
          2, 3,
          {.value_dim = 4, .use_causal_mask = true, .kernel_constraint = constraints::MaxNorm(2)}),
      layers::MultiHeadAttention(
          2, 3, {.output_shape = {2, 3}, .attention_axes = {2}, .return_attention_scores = true}),
      layers::Multiply(),
      layers::Normalization({.mean = numbers({1, 2}), .variance = numbers({3, 4})}),
      layers::ReLU({.max_value = 6, .negative_slope = 0.25}),
      layers::Rescaling(0.5, {.offset = -1}),
      layers::Reshape({2, -1}),
      layers::RNN({layers::LSTMCell(3, {.unit_forget_bias = false}), layers::SimpleRNNCell(2)},
                  {.return_state = true, .unroll = true, .time_major = true}),
      layers::RNN(layers::GRUCell(3), {.zero_output_for_mask = true}),
      layers::SimpleRNN(3, {.activation = "relu", .recurrent_dropout = 0.25}),
      layers::Softmax({.axis = {1}}),
      layers::Softmax({.axis = {1, 2}}),
      layers::StringLookup({.vocabulary = {"a", "b"}, .output_mode = "multi_hot"}),
      layers::StringLookup(
          {.vocabulary = {"a", "b"}, .idf_weights = {0.5, 1}, .output_mode = "tf_idf"}),
      layers::Subtract(),
      layers::AveragePooling3D(2, {.strides = 1, .data_format = "channels_first"}),
      layers::Conv1DTranspose(2, 3, {.strides = 3, .output_padding = 2}),
      layers::Conv2D(4, 3, {.data_format = "channels_first", .groups = 2}),
      layers::Conv3D(2, {1, 2, 3}, {.kernel_constraint = constraints::MaxNorm(3, {0, 1})}),
      layers::Conv3DTranspose(2, 2, {.strides = 2, .output_padding = layers::Size3D(0, 1, 0)}),
      layers::Cropping1D({1, 0}),
      layers::Cropping2D({1, {2, 3}}),
      layers::Cropping3D(1, {.data_format = "channels_first"}),
      layers::Dense(2, {.kernel_constraint = "non_neg",
                        .bias_constraint = constraints::MinMaxNorm({.rate = 0.5})}),
      layers::DepthwiseConv1D(3, {.depthwise_constraint = "unit_norm"}),
      layers::DepthwiseConv2D({2, 3}, {.padding = "same", .depth_multiplier = 2}),
      layers::Dropout(0.5, {.noise_shape = {kUnknownDim, 1, 3}}),
      layers::Embedding(3, 2, {.embeddings_constraint = constraints::UnitNorm({1})}),
      layers::GaussianDropout(0.5, {.seed = 3}),
      layers::GaussianNoise(0.5),
      layers::GlobalAveragePooling3D({.keepdims = true}),
      layers::GlobalMaxPooling1D({.data_format = "channels_first"}),
      layers::GlobalMaxPooling3D(),
      layers::GroupNormalization({.groups = -1, .axis = 2, .gamma_constraint = "non_neg"}),
      layers::Identity(),
      layers::MaxPooling3D({1, 2, 2}, {.padding = "same"}),
      layers::PReLU({.alpha_constraint = "non_neg", .shared_axes = {1, 2}}),
      layers::Permute({2, 1, 3}),
      layers::RepeatVector(4),
      layers::SeparableConv1D(2, 3, {.padding = "causal"}),
      layers::SeparableConv2D(2, 3, {.pointwise_constraint = constraints::RadialConstraint()}),
      layers::SpatialDropout1D(0.5, {.seed = 4}),
      layers::SpatialDropout2D(0.5, {.data_format = "channels_first"}),
      layers::SpatialDropout3D(0.5),
      layers::UpSampling1D(3),
      layers::UpSampling2D({1, 2}, {.interpolation = "bilinear"}),
      layers::UpSampling3D({1, 2, 3}),
      layers::ZeroPadding1D({1, 2}),
      layers::ZeroPadding2D({{1, 2}, {3, 4}}),
      layers::ZeroPadding3D(2),
      layers::TimeDistributed(layers::Dense(2, {.activation = "tanh"})),
      layers::TimeDistributed(Sequential({Input({3}), layers::Dense(2)}, {.name = "inner"})),
      layers::TextVectorization({.split = "character", .ngrams = 2, .vocabulary = {"a"}}),
      layers::TextVectorization({.standardize = nullptr, .output_sequence_length = 3}),
  };
}

TEST(LayerConfig, MakesTheLayerAgain) {
  for (const LayerHandle& layer : layers_of_all_kinds()) {
    const bool is_input = layer.class_name() == "Input";
    const std::string class_name = is_input ? "InputLayer" : layer.class_name();
    const std::optional<Config> config = layer.get_config();
    ASSERT_TRUE(config) << class_name;
    const LayerHandle again = layer_from_config(class_name, *config);
    EXPECT_EQ(again.class_name(), layer.class_name());
    EXPECT_EQ(*again.get_config(), *config) << class_name << '\n' << config->json();
  }
}

TEST(LayerConfig, KeepsWhetherItIsTrained) {
  const layers::Dense dense(2);
  dense.set_trainable(false);
  EXPECT_FALSE(layer_from_config("Dense", *dense.get_config()).trainable());
}

TEST(LayerConfig, RefusesWhatCohortDoesNotHave) {
  const auto refused = [](const char* class_name, const char* config) {
    return thrown<UnimplementedError>(
        [&] { layer_from_config(class_name, Config::parse(config)); });
  };
  EXPECT_THAT(refused("Embedding", R"({"name": "e", "input_dim": 2, "output_dim": 2,
                                        "activity_regularizer": {"a": 1}})"),
              AllOf(HasSubstr("'e' (Embedding)"), HasSubstr("'activity_regularizer'")));
  EXPECT_THAT(refused("Conv2DTranspose", R"({"filters": 2, "kernel_size": 3, "groups": 2})"),
              AllOf(HasSubstr("'groups'"), HasSubstr("2")));
  EXPECT_THAT(refused("Flatten", R"({"upside": "down"})"), HasSubstr("'upside'"));
}

TEST(LayerConfig, RefusesDamagedOnes) {
  const auto refused = [](const char* class_name, const char* config) {
    return thrown<InvalidArgumentError>(
        [&] { layer_from_config(class_name, Config::parse(config)); });
  };
  EXPECT_THAT(refused("Dense", R"({"units": "two"})"),
              AllOf(HasSubstr("'units'"), HasSubstr("an integer")));
  EXPECT_THAT(refused("Dense", R"({"units": 2, "kernel_initializer": "glorot_unifrom"})"),
              HasSubstr("the nearest is 'glorot_uniform'"));
  EXPECT_THAT(refused("Dense", R"({"units": 2, "kernel_regularizer": "l3"})"), HasSubstr("'l3'"));
  EXPECT_THAT(refused("Dense", R"({"units": 2, "activation": "rleu"})"), HasSubstr("'rleu'"));
  EXPECT_THAT(refused("Dense", R"({"name": "d", "units": 2, "kernel_constraint": {"a": 1}})"),
              AllOf(HasSubstr("'d' (Dense)"), HasSubstr("'kernel_constraint'")));
  EXPECT_THAT(refused("Dense", R"({"units": 2, "bias_constraint": "nonng"})"),
              HasSubstr("the nearest is 'nonneg'"));
  EXPECT_THAT(refused("Conv2d", "{}"), HasSubstr("the nearest is 'Conv2D'"));
  EXPECT_THAT(refused("InputLayer", "{}"), HasSubstr("batch_input_shape"));
}

// ---- models -------------------------------------------------------------------------------------

// Whether a model made of its JSON, with equal weights, gives equal outputs.
void expect_round_trip(const ModelHandle& model, const Structure& inputs) {
  const std::vector<Leaf> expected = model(inputs).flatten();
  const ModelHandle again = model_from_json(model.to_json());
  EXPECT_EQ(again.to_json(), model.to_json());
  again(inputs);
  again.set_weights(model.get_weights());
  const std::vector<Leaf> outputs = again(inputs).flatten();
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].tensor().equal(expected[i].tensor()));
  }
}

TEST(ModelJson, OfASequentialModel) {
  expect_round_trip(Sequential({Input({4}, {.name = "in"}),
                                layers::Dense(3, {.activation = "relu"}), layers::Dense(2)}),
                    numbers({1, 2, 3, 4}, {1, 4}));
}

TEST(ModelJson, KeepsTheBatchSizeOfAnInputAsKerasWritesIt) {
  const Sequential model({Input({4}, {.batch_size = 8, .name = "in"}), layers::Dense(2)});
  const std::string json = model.to_json();
  EXPECT_THAT(json, HasSubstr(R"("batch_input_shape":[8,4])"));
  EXPECT_EQ(model_from_json(json).to_json(), json);
  // As Keras's models, it takes others.
  EXPECT_EQ(model_from_json(json)(at::zeros({3, 4})).sizes().vec(), (std::vector<int64_t>{3, 2}));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Input({4}, {.batch_size = 0}); }),
              HasSubstr("batch_size is 0"));
}

TEST(ModelJson, OfASequentialModelThatItsFirstCallHasBuilt) {
  const Sequential model({layers::Embedding(5, 3), layers::Flatten(), layers::Dense(2)});
  const Sequential unbuilt({layers::Dense(2)});
  EXPECT_FALSE(model_from_json(unbuilt.to_json()).built());
  const Tensor ids = numbers({1, 2, 3, 4}, {2, 2}, int64);
  model(ids);
  EXPECT_TRUE(model_from_json(model.to_json()).built());
  expect_round_trip(model, ids);
}

TEST(ModelJson, OfAGraphWithSharedLayers) {
  const SymbolicTensor a = Input({4}, {.name = "a"});
  const SymbolicTensor b = Input({4}, {.name = "b"});
  const layers::Dense shared(3);
  const SymbolicTensor merged = layers::Concatenate()({shared(a), shared(b)});
  const Sequential inner({layers::Dense(2), layers::Activation("tanh")});
  const Functional model({a, b}, {inner(merged), shared(a)});
  expect_round_trip(model, tuple(numbers({1, 2, 3, 4}, {1, 4}), numbers({5, 6, 7, 8}, {1, 4})));
}

TEST(ModelJson, OfDictsAndNestedGraphs) {
  const SymbolicTensor inner_input = Input({2});
  const Functional inner(inner_input, layers::Dense(2)(inner_input));
  const SymbolicTensor x = Input({2}, {.name = "x"});
  const SymbolicTensor y = Input({2}, {.name = "y"});
  const Functional model(
      SymbolicStructure::make_dict({{"x", x}, {"y", y}}),
      SymbolicStructure::make_dict({{"sum", layers::Add()({inner(x), inner(y)})}}));
  expect_round_trip(model, dict({{"x", numbers({1, 2}, {1, 2})}, {"y", numbers({3, 4}, {1, 2})}}));
}

TEST(ModelJson, OfAttentionAndStates) {
  const SymbolicTensor query = Input({3, 4});
  const SymbolicTensor value = Input({5, 4});
  const SymbolicTensor attended =
      layers::MultiHeadAttention(2, 3, {.use_causal_mask = true})({query, query});
  const SymbolicStructure encoded =
      layers::LSTM(3, {.return_state = true})(SymbolicStructure(value));
  const SymbolicTensor decoded = layers::LSTM(3)({attended, encoded[1], encoded[2]});
  const SymbolicTensor dropped = layers::Dropout(0.5)(decoded, {.training = false});
  const auto generator = random::RandomGenerator::from_seed(3);
  expect_round_trip(Functional({query, value}, dropped),
                    tuple(generator.normal({2, 3, 4}), generator.normal({2, 5, 4})));
}

TEST(ModelJson, OfAttentionWhoseConfigIsNoObject) {
  const SymbolicTensor query = Input({3, 4});
  const Functional model(
      query, layers::MultiHeadAttention(2, 3, {.use_causal_mask = true})({query, query}));
  std::string json = model.to_json();
  const size_t attention = json.find("\"MultiHeadAttention\"");
  ASSERT_NE(attention, std::string::npos);
  json.replace(json.find("\"config\":{", attention), 9, "\"config\":7,\"other\":");
  EXPECT_THROW(model_from_json(json), InvalidArgumentError);
}

TEST(ModelJson, OfStrings) {
  const SymbolicTensor words = Input({2}, {.dtype = cohort::string});
  const Functional model(words, layers::StringLookup({.vocabulary = {"a", "b"}})(words));
  expect_round_trip(model, StringTensor({"b", "z", "a", "a"}).reshape({2, 2}));
}

class Doubled : public layers::Layer {
 public:
  explicit Doubled(int64_t times, const std::string& name = "")
      : Layer({.name = name}), times_(times) {}
  std::optional<Config> get_config() const override {
    return Config().set("name", name()).set("times", times_);
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override { return input * times_; }

 private:
  int64_t times_;
};

class Secret : public layers::Layer {
 protected:
  Tensor call(const Tensor& input, const CallOptions&) override { return input; }
};

TEST(ModelJson, OfLayersOfTheProgram) {
  const Sequential model({Input({2}), std::make_shared<Doubled>(3)});
  const ModelHandle again =
      model_from_json(model.to_json(), {{"Doubled", [](const Config& config) {
                                           return std::make_shared<Doubled>(
                                               config.get_int("times"), config.get_string("name"));
                                         }}});
  EXPECT_EQ(elements(again(numbers({1, 2}, {1, 2}))), (std::vector<double>{3, 6}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model_from_json(model.to_json()); }),
              AllOf(HasSubstr("'Doubled'"), HasSubstr(".custom_objects")));
}

TEST(ModelJson, NamesTheLayerThatCannotBeWritten) {
  const Sequential secret({Input({2}), std::make_shared<Secret>()});
  EXPECT_THAT(thrown<UnimplementedError>([&] { secret.to_json(); }),
              AllOf(HasSubstr("'secret' (Secret)"), HasSubstr("get_config")));
  const Sequential function({layers::Dense(
      2, {.activation = [](const Tensor& x) { return x.clamp(0, 6); }, .name = "clamped"})});
  EXPECT_THAT(thrown<UnimplementedError>([&] { function.to_json(); }),
              AllOf(HasSubstr("'clamped' (Dense)"), HasSubstr("activation")));
}

TEST(ModelJson, RefusesWhatIsNoModel) {
  const auto refused = [](const std::string& json) {
    return thrown<InvalidArgumentError>([&] { model_from_json(json); });
  };
  EXPECT_THAT(refused(R"({"class_name": "Sequentail", "config": {}})"),
              HasSubstr("the nearest is 'Sequential'"));
  EXPECT_THAT(refused("not json"), HasSubstr("model_from_json"));
  EXPECT_THAT(refused("{}"), HasSubstr("'class_name' is missing"));
  EXPECT_THAT(refused(R"({"class_name": "Sequential", "config": {}})"), HasSubstr("'layers'"));
  EXPECT_THAT(refused(R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense",
               "config": {"name": "d", "units": -1}}]}})"),
              HasSubstr("units is -1"));
}

TEST(ModelJson, NamesTheLayerWhoseOptionIsUnknown) {
  const auto refused = [](const std::string& layer) {
    return thrown<InvalidArgumentError>([&] {
      model_from_json(R"({"class_name": "Sequential", "config": {"layers": [)" + layer + "]}}");
    });
  };
  const auto option = [&](const std::string& field) {
    return refused(R"({"class_name": "Dense", "config": {"name": "d", "units": 2, )" + field +
                   "}}");
  };
  const auto place = StartsWith("model_from_json: Sequential: layers[0]: ");
  EXPECT_THAT(option(R"("activation": "reluu")"),
              AllOf(place, HasSubstr("layer 'd' (Dense): 'activation': no activation is called")));
  EXPECT_THAT(
      option(R"("kernel_initializer": {"class_name": "Ortogonal", "config": {}})"),
      AllOf(place, HasSubstr("'kernel_initializer': no initializer is called 'Ortogonal'")));
  EXPECT_THAT(option(R"("kernel_regularizer": "l3")"),
              AllOf(place, HasSubstr("'kernel_regularizer': no regularizer is called 'l3'")));
  EXPECT_THAT(refused(R"({"class_name": "Dens", "config": {}})"),
              AllOf(place, HasSubstr("layers[0]: no class of layers"), HasSubstr("'Dense'")));
}

// What constructors throw, they say of an option without knowing of the file.
TEST(ModelJson, SaysWhereAConstructorRefusedWhatItRead) {
  const auto refused = [](const std::string& layer, const models::CustomObjects& custom = {}) {
    return thrown<Error>([&] {
      model_from_json(R"({"class_name": "Sequential", "config": {"layers": [)" + layer + "]}}",
                      custom);
    });
  };
  const std::string place = "model_from_json: Sequential: layers[0]: ";
  EXPECT_EQ(refused(R"({"class_name": "Dense", "config": {"name": "d", "units": -1}})"),
            place + "layer 'd' (Dense): Dense: units is -1, below 1");
  const std::string orthogonal = R"({"class_name": "Dense", "config": {"name": "d", "units": 2,
      "kernel_initializer": {"class_name": "VarianceScaling", "config": {"mode": "fan_off"}}}})";
  EXPECT_THAT(
      refused(orthogonal),
      AllOf(StartsWith(place + "layer 'd' (Dense): 'kernel_initializer' (VarianceScaling): "),
            HasSubstr("fan_off")));
  const std::string nested = R"({"class_name": "Bidirectional", "config": {"name": "b",
      "layer": {"class_name": "LSTM", "config": {"name": "l", "units": 0}}}})";
  EXPECT_THAT(refused(nested),
              AllOf(StartsWith(place + "layer 'b' (Bidirectional): 'layer': layer 'l' (LSTM): "),
                    HasSubstr("units is 0")));
  EXPECT_EQ(
      refused(R"({"class_name": "Bidirectional", "config": {"name": "b",
      "layer": {"class_name": "Sequential", "config": {"name": "s", "layers": []}}}})"),
      place +
          "layer 'b' (Bidirectional): Bidirectional takes an RNN, LSTM, GRU or SimpleRNN, but "
          "got 's' of class Sequential");
  EXPECT_EQ(refused(R"({"class_name": "Own", "config": {"name": "o"}})",
                    {{"Own",
                      [](const Config& config) {
                        return std::make_shared<Doubled>(config.get_int("times"));
                      }}}),
            place + "layer 'o' (Own): configuration: 'times' is missing");
}

TEST(ModelJson, SaysWhichModelItsLayersDoNotFit) {
  const std::string dense = R"({"class_name": "Dense", "config": {"name": "d", "units": 2}})";
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model_from_json(R"({"class_name": "Sequential", "config": {"name": "m",
                                "layers": [)" +
                                dense + ", " + dense + "]}}");
              }),
              StartsWith("model_from_json: Sequential: "));
  const SymbolicTensor x = Input({2, 2, 2}, {.name = "x"});
  std::string json = Functional(x, layers::MaxPooling2D(2, {.name = "p"})(x)).to_json();
  const size_t at = json.find("\"batch_input_shape\":[null,2,2,2]");
  ASSERT_NE(at, std::string::npos) << json;
  json.replace(at, 32, "\"batch_input_shape\":[null,2]");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model_from_json(json); }),
              StartsWith("model_from_json: Functional: layer 'p': inbound_nodes[0]: layer 'p'"));
}

TEST(ModelJson, ReadsInitializersOfKeras) {
  const std::string json =
      R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense",
      "config": {"name": "d", "units": 2, "kernel_initializer": {"class_name": "VarianceScaling",
      "config": {"scale": 2.0, "mode": "fan_out", "distribution": "uniform", "seed": 3}}}}]}})";
  EXPECT_THAT(model_from_json(json).to_json(),
              AllOf(HasSubstr("VarianceScaling"), HasSubstr("fan_out"), HasSubstr("\"uniform\"")));
}

TEST(ModelJson, RefusesDamagedGraphs) {
  const SymbolicTensor x = Input({2}, {.name = "x"});
  const Functional model(x, layers::Dense(2, {.name = "d"})(x));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string json = model.to_json();
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << json;
    if (at != std::string::npos) json.replace(at, from.size(), to);
    return thrown<InvalidArgumentError>([&] { model_from_json(json); });
  };
  EXPECT_THAT(with(R"([["x",0,0,{}]])", R"([["y",0,0,{}]])"), HasSubstr("no layer \"y\""));
  EXPECT_THAT(with(R"([["x",0,0,{}]])", R"([["x",3,0,{}]])"), HasSubstr("number 3"));
  EXPECT_THAT(with(R"([["x",0,0,{}]])", R"([["x",0,2,{}]])"), HasSubstr("number 2"));
  EXPECT_THAT(with(R"([["x",0,0,{}]])", R"([["d",0,0,{}]])"), HasSubstr("'d' reads"));
  EXPECT_THAT(with(R"("output_layers":[["d",0,0]])", R"("output_layers":[])"),
              HasSubstr("'output_layers'"));
  EXPECT_THAT(with(R"("output_layers":[["d",0,0]])", R"("output_layers":7)"),
              HasSubstr("'output_layers'"));
}

TEST(CloneModel, HasTheSameLayersAndWeightsOfItsOwn) {
  const SymbolicTensor x = Input({3}, {.name = "x"});
  const layers::Dense shared(3, {.activation = "relu", .name = "shared"});
  const Functional model(x, layers::Dense(1, {.name = "y"})(shared(shared(x))));
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const ModelHandle copy = models::clone_model(model);
  EXPECT_EQ(copy.to_json(), model.to_json());
  EXPECT_EQ(copy.variables()[0].components().values().size(), 2u);
  EXPECT_THROW(copy.optimizer(), FailedPreconditionError);

  const Tensor input = numbers({1, 2, 3}, {1, 3});
  copy.set_weights(model.get_weights());
  EXPECT_EQ(elements(copy(input)), elements(model(input)));
  copy.variables()[0].assign(at::zeros({3, 3}));
  EXPECT_NE(elements(copy.variables()[0].value()), elements(model.variables()[0].value()));
}

TEST(CloneModel, OfALayerWithoutAConfigurationIsRefused) {
  const Sequential model({layers::Lambda([](const Tensor& x) { return x; }, {.name = "own"})});
  EXPECT_THAT(thrown<UnimplementedError>([&] { models::clone_model(model); }), HasSubstr("own"));
}

}  // namespace
}  // namespace cohort::keras
