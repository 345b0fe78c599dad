// Configurations with numbers that no layer or metric can have: each ends in an error that names
// its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "cohort/core/testing_folder.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(HostileConfig, IntegersAreNeverOthers) {
  const Config config = Config::parse(
      R"({"most": 9223372036854775807, "least": -9223372036854775808, "more": 9223372036854775808,
          "list": [1, 18446744073709551615], "far": 99999999999999999999999})");
  EXPECT_EQ(config.get_int("most"), kMost);
  EXPECT_EQ(config.get_int("least"), std::numeric_limits<int64_t>::min());
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { config.get_int("more"); }),
              AllOf(HasSubstr("'more'"), HasSubstr("9223372036854775808")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { config.get_ints("list"); }),
              AllOf(HasSubstr("'list'"), HasSubstr("18446744073709551615")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { config.get_int("far"); }), HasSubstr("'far'"));
}

TEST(HostileConfig, SeedsHaveAllBits) {
  constexpr uint64_t kSeed = ~uint64_t{0};
  const layers::Dropout dropout(0.5, {.seed = kSeed});
  const auto again = models::layer_from_config("Dropout", *dropout.get_config());
  EXPECT_EQ(*again.get_config(), *dropout.get_config());
  EXPECT_THAT(again.get_config()->json(), HasSubstr("18446744073709551615"));
  // As older files have them.
  const auto negative =
      models::layer_from_config("Dropout", Config::parse(R"({"rate": 0.5, "seed": -1})"));
  EXPECT_THAT(negative.get_config()->json(), HasSubstr("18446744073709551615"));
  const layers::Dense dense(1, {.kernel_initializer = initializers::HeNormal({.seed = kSeed})});
  EXPECT_EQ(*models::layer_from_config("Dense", *dense.get_config()).get_config(),
            *dense.get_config());
}

struct LayerCase {
  const char* class_name;
  const char* fields;
  const char* input;  // the sizes of an example
};

// A model of an input and this layer, called "hostile".
std::string model_json(const LayerCase& one) {
  return internal::str(
      R"({"class_name": "Sequential", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "config": {"batch_input_shape": [null, )",
      one.input, R"(], "dtype": "float32", "name": "in"}}, {"class_name": ")", one.class_name,
      R"(", "config": {"name": "hostile", )", one.fields, "}}]}}");
}

TEST(HostileConfig, EachLayerIsNamed) {
  const LayerCase cases[] = {
      {"Dense", R"("units": 9223372036854775808)", "3"},
      {"Dense", R"("units": 18446744073709551617)", "3"},
      {"Dense", R"("units": 1152921504606846976)", "3"},
      {"Embedding", R"("input_dim": 1152921504606846976, "output_dim": 1024)", "3"},
      {"LSTM", R"("units": 4611686018427387904)", "5, 3"},
      {"GRU", R"("units": 9223372036854775807)", "5, 3"},
      {"Conv2D", R"("filters": 1152921504606846976, "kernel_size": [3, 3])", "8, 8, 3"},
      {"Conv2D", R"("filters": 2, "kernel_size": [4294967296, 9223372036854775808])", "8, 8, 3"},
      {"Reshape", R"("target_shape": [4294967296, 4294967296])", "3"},
      {"StringLookup", R"("num_oov_indices": 9223372036854775807)", "3"},
      {"TextVectorization", R"("ngrams": 4294967298)", "3"},
      {"TextVectorization", R"("ngrams": 1099511627776)", "3"},
      {"Hashing", R"("num_bins": 0)", "3"},
      {"Hashing", R"("num_bins": 3, "salt": [1, 2, 3])", "3"},
      {"Hashing", R"("num_bins": 3, "mask_value": 1.5)", "3"},
      {"Hashing", R"("num_bins": 1152921504606846976, "output_mode": "count")", "3"},
      {"CategoryEncoding", R"("num_tokens": 1152921504606846976)", "3"},
      {"Discretization", R"("num_bins": 9223372036854775807, "output_mode": "count")", "3"},
      {"Discretization", R"("bin_boundaries": [2.0, 1.0])", "3"},
      {"Discretization", R"("num_bins": 3, "epsilon": 0.0)", "3"},
      {"LayerNormalization", R"("axis": 9223372036854775808)", "3"},
      {"Conv3D", R"("filters": 4, "kernel_size": [2147483647, 2147483647, 4])", "8, 8, 8, 3"},
      {"DepthwiseConv2D", R"("kernel_size": 3, "depth_multiplier": 4611686018427387904)",
       "8, 8, 3"},
      {"GroupNormalization", R"("groups": 9223372036854775807)", "3"},
      {"PReLU", R"("shared_axes": [9223372036854775807])", "3"},
      {"RepeatVector", R"("n": 9223372036854775807)", "3"},
      {"UpSampling2D", R"("size": [4611686018427387904, 2])", "8, 8, 3"},
      {"ZeroPadding1D", R"("padding": 9223372036854775807)", "8, 3"},
      {"Cropping2D", R"("cropping": [[9223372036854775807, 9223372036854775807], 0])", "8, 8, 3"},
      {"Dense", R"("units": 2, "kernel_constraint": {"class_name": "MaxNorm", "config": {"axis":
                9223372036854775807}})",
       "3"},
  };
  for (const LayerCase& one : cases) {
    SCOPED_TRACE(one.fields);
    try {
      models::model_from_json(model_json(one));
      ADD_FAILURE() << "a model was made";
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Code::kInvalidArgument ||
                  error.code() == Code::kResourceExhausted)
          << code_name(error.code());
      EXPECT_THAT(error.what(), AllOf(HasSubstr("model_from_json"), HasSubstr("'hostile'")));
    }
  }
}

TEST(HostileConfig, InputsOfMoreElementsThanThereCanBe) {
  for (const char* shape : {"4611686018427387904, 4", "1099511627776, 1099511627776", "-2"}) {
    const LayerCase one = {"Flatten", R"("data_format": "channels_last")", shape};
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { models::model_from_json(model_json(one)); }),
                AllOf(HasSubstr("layers[0]"), HasSubstr("'in'")))
        << shape;
  }
}

// Their sizes alone would be a product of 2^70.
TEST(HostileConfig, RowsOfUnlikeLengths) {
  std::string rows = "1";
  for (int i = 0; i < 70; ++i) rows = "[" + rows + ", 0]";
  const Config config = Config::parse(internal::str(R"({"mean": )", rows, R"(, "variance": [1]})"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { models::layer_from_config("Normalization", config); }),
      AllOf(HasSubstr("'mean'"), HasSubstr("unlike lengths")));
}

Sequential nested(int levels) {
  Sequential model({layers::Dense(1)});
  for (int i = 1; i < levels; ++i) model = Sequential({model, layers::Activation("linear")});
  return model;
}

// What is saved can be read: what is nested deeper than that is refused before anything is written.
TEST(HostileConfig, ModelsNestedTooDeepAreNotSaved) {
  const Tensor x = numbers({1, 2}, {1, 2});
  const internal::TemporaryFolder folder;
  const Sequential deep = nested(60);
  const Tensor y = deep(x);
  deep.save(folder / "deep");
  EXPECT_TRUE(models::load_model(folder / "deep")(x).equal(y));

  const Sequential deeper = nested(70);
  deeper(x);
  const auto too_deep =
      AllOf(HasSubstr(deeper.name()), HasSubstr("200 levels"), HasSubstr("nest fewer models"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { deeper.save(folder / "deeper"); }), too_deep);
  EXPECT_FALSE(std::filesystem::exists(folder / "deeper"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { deeper.to_json(); }), too_deep);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { models::clone_model(deeper); }), too_deep);
  deeper.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                deeper.fit(
                    x, x.slice(1, 0, 1),
                    {.verbose = 0, .callbacks = {callbacks::ModelCheckpoint(folder / "each")}});
              }),
              too_deep);
  // Weights alone have no configuration.
  deeper.save_weights(folder / "weights");
  deeper.load_weights(folder / "weights");
}

TEST(HostileConfig, CountsOfMetrics) {
  constexpr int64_t kMany = int64_t{1} << 50;
  const auto refused = [](const auto& make) { return thrown<InvalidArgumentError>(make); };
  const auto too_many = HasSubstr("is 1125899906842624; it must be at most 1000000");
  EXPECT_THAT(refused([] { metrics::AUC({.num_thresholds = kMany}); }), too_many);
  EXPECT_THAT(refused([] { metrics::MeanIoU({.num_classes = kMany}); }), too_many);
  EXPECT_THAT(refused([] { metrics::IoU({.num_classes = kMany, .target_class_ids = {0}}); }),
              too_many);
  EXPECT_THAT(refused([] { metrics::PrecisionAtRecall(0.5, {.num_thresholds = kMany}); }),
              too_many);
}

// A file with holes may be of any size; to read it would take as much memory.
TEST(HostileConfig, AModelsFileLongerThanAny) {
  const internal::TemporaryFolder folder;
  std::filesystem::resize_file(folder.write("model.json", "{}"), uintmax_t{1} << 40);
  EXPECT_THAT(thrown<DataLossError>([&] { models::load_model(folder.path()); }),
              AllOf(HasSubstr("model.json"), HasSubstr("has 1099511627776 bytes")));
}

}  // namespace
}  // namespace cohort::keras
