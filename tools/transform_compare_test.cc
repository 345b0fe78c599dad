#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <sstream>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "tools/testing_transforms.h"
#include "tools/transform_commands.h"

namespace cohort::tools {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct TransformCompare : testing::Test {
  std::string compare(const TransformContent& a, const TransformContent& b, int exit_code,
                      TransformCompareOptions options = {}) {
    write_transform(files, "a", a);
    write_transform(files, "b", b);
    options.a = "a";
    options.b = "b";
    std::ostringstream out;
    EXPECT_EQ(compare_transforms(files, options, out), exit_code);
    return out.str();
  }
  // How far each measure has moved; of vocabularies "tokens" and "shares of tokens".
  std::map<std::string, double> moved(const TransformContent& a, const TransformContent& b,
                                      TransformCompareOptions options = {}) {
    options.json = true;
    options.limits.all = kInfinite;
    std::map<std::string, double> distances;
    const auto json = nlohmann::json::parse(compare(a, b, kExitOk, options));
    for (const auto& one : json["measures"]) {
      std::string name = one["measure"];
      if (name == "shares" && std::string(one["of"]).starts_with("vocabulary"))
        name += " of tokens";
      distances[name] = one["moved"] == "inf" ? kInfinite : one["moved"].get<double>();
    }
    EXPECT_EQ(distances.size(), 8u);
    return distances;
  }

  internal::SimulatedFileSystem files;
};

TEST_F(TransformCompare, TheSameRunHasNotMoved) {
  const std::string text = compare({}, {}, kExitOk, {.a = "a", .b = "b", .limits = {.all = 0}});
  EXPECT_THAT(text, HasSubstr("the functions are equal\n"));
  EXPECT_THAT(text, Not(HasSubstr("DRIFT")));
  EXPECT_THAT(text, HasSubstr("no drift: 0 of 8 measures beyond their limits\n"));
  for (const auto& [name, distance] : moved({}, {})) EXPECT_EQ(distance, 0) << name;
  // Nor has one without any values.
  const TransformContent empty = {.mean = 0,
                                  .variance = 0,
                                  .min = kNaN,
                                  .max = kNaN,
                                  .quantiles = {kNaN, kNaN},
                                  .sums = {0, kInfinite}};
  for (const auto& [name, distance] : moved(empty, empty)) EXPECT_EQ(distance, 0) << name;
}

TEST_F(TransformCompare, MeasuresEachInItsOwnUnit) {
  auto distances = moved({}, {.rows = 16,
                              .mean = 45,
                              .variance = 150,
                              .min = 10,
                              .max = 64,
                              .quantiles = {10, 21, 34},
                              .counts = {2, 3, 4},
                              .sums = {2, 6}});
  EXPECT_THAT(distances["mean"], DoubleNear(.5, 1e-12));       // 5 of 10
  EXPECT_THAT(distances["variance"], DoubleNear(.5, 1e-12));   // 150 / 100
  EXPECT_THAT(distances["range"], DoubleNear(.25, 1e-12));     // 10 of 40
  EXPECT_THAT(distances["quantiles"], DoubleNear(.2, 1e-12));  // 4 of 20
  EXPECT_THAT(distances["shares"], DoubleNear(2. / 9 - 1. / 8, 1e-12));
  EXPECT_THAT(distances["sum"], DoubleNear(.2, 1e-12));  // 2.5 / 8 to 6 / 16
  EXPECT_EQ(distances["tokens"], 0);
  // Both ways, and a range that has shrunk has moved nowhere.
  EXPECT_THAT(moved({.variance = 150}, {})["variance"], DoubleNear(.5, 1e-12));
  EXPECT_EQ(moved({}, {.min = 30, .max = 50})["range"], 0);
}

TEST_F(TransformCompare, WhatHasNothingToDivideByIsInfinite) {
  EXPECT_EQ(moved({.variance = 0}, {.mean = 41, .variance = 0})["mean"], kInfinite);
  EXPECT_EQ(moved({.variance = 0}, {})["variance"], kInfinite);
  EXPECT_EQ(moved({}, {.variance = 0})["variance"], kInfinite);
  EXPECT_EQ(moved({}, {.mean = kNaN})["mean"], kInfinite);
  EXPECT_EQ(moved({.min = kNaN, .max = kNaN}, {})["range"], kInfinite);
  EXPECT_EQ(moved({}, {.max = kInfinite})["range"], kInfinite);
  EXPECT_EQ(moved({.min = 20, .max = 20}, {.min = 20, .max = 21})["range"], kInfinite);
  EXPECT_EQ(moved({}, {.quantiles = {}})["quantiles"], kInfinite);
  EXPECT_EQ(moved({.quantiles = {0}}, {.quantiles = {1}})["quantiles"], kInfinite);
  EXPECT_THAT(moved({.quantiles = {10}}, {.quantiles = {11}})["quantiles"], DoubleNear(.1, 1e-12));
  EXPECT_EQ(moved({.sums = {0, 1}}, {.sums = {1, 1}})["sum"], kInfinite);
  EXPECT_EQ(moved({}, {.sums = {1}})["sum"], kInfinite);  // another shape
}

TEST_F(TransformCompare, TokensAreNewGoneAndElsewhere) {
  const TransformContent a = {.tokens = {"4 a", "3 b", "2 c", "1 d"}};
  const TransformContent b = {.tokens = {"5 b", "3 a", "1 e", "1 c"}};
  auto distances = moved(a, b);
  EXPECT_EQ(distances["tokens"], .25);
  EXPECT_THAT(distances["shares of tokens"], DoubleNear(.2, 1e-12));  // b: 30% to 50%
  const std::string text = compare(a, b, kExitDifferent);
  EXPECT_THAT(text, HasSubstr("4 tokens, first 4: 1 gone  4 tokens, first 4: 1 new, 3 elsewhere"));
  EXPECT_THAT(text, HasSubstr("DRIFT  shares     vocabulary 'city names'  'b' 30%"));
  EXPECT_EQ(moved(a, b, {.a = "a", .b = "b", .tokens = 2})["tokens"], 0);
  EXPECT_EQ(moved(a, {.tokens = {}})["tokens"], 1);
}

TEST_F(TransformCompare, KeysThatOnlyOneHasCount) {
  auto distances = moved({}, {.keys = {"bonn", "oslo"}, .counts = {2, 6}});
  EXPECT_EQ(distances["shares"], .75);  // of "oslo"
  EXPECT_EQ(moved({.keys = {}, .counts = {}}, {})["shares"], .5);
}

TEST_F(TransformCompare, LimitsAreOfAllMeasuresOrOfOne) {
  const TransformContent moved_mean = {.mean = 45};
  EXPECT_THAT(
      compare({}, moved_mean, kExitDifferent),
      AllOf(HasSubstr("DRIFT  mean"), HasSubstr("drift: 1 of 8 measures beyond their limits\n")));
  compare({}, moved_mean, kExitOk, {.a = "a", .b = "b", .limits = {.all = .5}});
  TransformCompareOptions options;
  options.limits.of_measure[static_cast<size_t>(Measure::kMean)] = .6;
  compare({}, moved_mean, kExitOk, options);
  compare({}, {.mean = 45, .variance = 200}, kExitDifferent, options);
}

TEST_F(TransformCompare, SaysWhereFunctionsDiffer) {
  const std::string text = compare({}, {.divisor = 3}, kExitDifferent);
  EXPECT_THAT(
      text, AllOf(HasSubstr("function: output half: A apply_buckets(age / 2, quantiles(age / 2)), "
                            "B apply_buckets(age / 3, quantiles(age / 3))\n"),
                  HasSubstr("function: only A has quantiles of age / 2 (epsilon=0.01, "
                            "num_buckets=4)\n"),
                  HasSubstr("function: only B has quantiles of age / 3"),
                  HasSubstr("drift: the functions differ; 0 of 7 measures beyond")));
  EXPECT_THAT(text, Not(HasSubstr("output age")));
}

// A column of another type makes other steps of all that use it.
TEST_F(TransformCompare, SaysWhichColumnsAndOutputsAreNew) {
  write_transform(files, "a");
  write_transform(files, "b");
  internal::TransformDocument document = internal::read_transform_document(files, "b");
  auto& function = document.json["function"];
  function["columns"][0]["type"]["dtype"] = "int64";
  function["columns"][2]["name"] = "couple";
  function["steps"][11]["attributes"]["name"] = "couple";
  function["outputs"][1]["name"] = "town";
  write_file(files, transform_path("b"), internal::transform_document_text(document.json));
  std::ostringstream out;
  EXPECT_EQ(compare_transforms(files, {.a = "a", .b = "b"}, out), kExitDifferent);
  for (const char* line : {"column age: A float32 [rows], B int64 [rows]",
                           "column pair is only in A: float32 [rows, 2]",
                           "column couple is only in B: float32 [rows, 2]",
                           "output city is only in A: apply_vocabulary(",
                           "output town is only in B: apply_vocabulary(",
                           "output age: A z_score(age, ", "only A has mean_and_variance of age\n",
                           "only B has sum of couple (reduce_instance_dims=false)"}) {
    EXPECT_THAT(out.str(), HasSubstr(std::string("function: ") + line));
  }
  EXPECT_THAT(out.str(), HasSubstr("0 of 3 measures"));  // of "home city"
}

// The order in which a function names its outputs and makes its steps is no difference.
TEST_F(TransformCompare, AnotherOrderIsNoDifference) {
  write_transform(files, "a");
  write_transform(files, "b");
  internal::TransformDocument document = internal::read_transform_document(files, "b");
  auto& function = document.json["function"];
  std::swap(function["outputs"][0], function["outputs"][2]);
  std::swap(function["analyses"][0], function["analyses"][1]);
  std::swap(document.json["results"][0], document.json["results"][1]);
  function["steps"][1]["analysis"] = 1;
  function["steps"][2]["analysis"] = 1;
  write_file(files, transform_path("b"), internal::transform_document_text(document.json));
  std::ostringstream out;
  EXPECT_EQ(compare_transforms(files, {.a = "a", .b = "b"}, out), kExitOk) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("0 of 8 measures"));
}

TEST_F(TransformCompare, DamageIsNoDrift) {
  write_transform(files, "a");
  std::ostringstream out;
  EXPECT_THROW(compare_transforms(files, {.a = "a", .b = "none"}, out), NotFoundError);
  write_transform(files, "b");
  std::string bytes = files.content(vocabulary_path("b"));
  bytes[0] ^= 1;
  files.set_content(vocabulary_path("b"), bytes);
  EXPECT_THROW(compare_transforms(files, {.a = "a", .b = "b"}, out), DataLossError);
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace cohort::tools
