#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// As Python's json, which Keras reads and writes with.
TEST(ConfigText, HoldsNumbersThatAreNotFinite) {
  Config config;
  config.set("nan", std::nan("")).set("most", kInfinity).set("least", -kInfinity);
  EXPECT_EQ(config.json(), R"({"least":-Infinity,"most":Infinity,"nan":NaN})");
  const Config read = Config::parse(config.json());
  EXPECT_TRUE(std::isnan(read.get_double("nan")));
  EXPECT_EQ(read.get_double("most"), kInfinity);
  EXPECT_EQ(read.get_double("least"), -kInfinity);
}

TEST(ConfigText, WordsInTextsStayTexts) {
  Config config;
  config.set("NaN", "Infinity").set("quoted", "\"NaN\\").set("mark", "number NaN");
  config.set("number", -kInfinity);
  const Config read = Config::parse(config.json());
  EXPECT_EQ(read, config);
  EXPECT_EQ(read.get_string("mark"), "number NaN");
}

TEST(ConfigText, OtherWordsAreRefused) {
  for (const char* text : {R"({"a": NaN1})", R"({"a": Inf})", R"({"a": +Infinity})",
                           R"({"a": -NaN})", R"({"a": 1NaN})"}) {
    EXPECT_THROW(Config::parse(text), InvalidArgumentError) << text;
  }
}

TEST(ConfigText, AnotherEncodingIsNamed) {
  const Config inner = Config().set("word", "caf\xe9");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Config().set("inner", inner).json(); }),
              AllOf(HasSubstr("inner.word"), HasSubstr("UTF-8")));
  const Sequential model({layers::Dense(1, {.name = "caf\xe9"})}, {.name = "m"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.to_json(); }),
              AllOf(HasSubstr("layers[0].config.name"), HasSubstr("UTF-8")));
}

TEST(ConfigText, ModelsWithSuchNumbersAreMadeAgain) {
  const Sequential model({Input({2, 1}, {.name = "x"}),
                          layers::Masking({.mask_value = kInfinity, .name = "masking"}),
                          layers::ReLU({.max_value = kInfinity, .name = "caf\u00e9 \u4f60"})});
  const ModelHandle copy = models::clone_model(model);
  EXPECT_EQ(copy.to_json(), model.to_json());
  EXPECT_EQ(copy.get_layer(1).name(), "caf\u00e9 \u4f60");
}

}  // namespace
}  // namespace cohort::keras
