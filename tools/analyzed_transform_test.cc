// The commands on what transform::analyze_dataset writes.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/functions/mappers.h"
#include "cohort/transform/testing_columns.h"
#include "tools/transform_commands.h"

namespace cohort::tools {
namespace {

using internal::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using transform::Columns;

// Ages from `first` on, cities of which `share` in 10 are Rome, and a pair that is missing at times.
Structure people(int64_t first, int64_t share) {
  constexpr int64_t kRows = 100;
  std::vector<std::string> cities;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < kRows; ++i) {
    cities.emplace_back(i % 10 < share ? "rome" : "bonn");
    lengths.push_back(i % 2);
  }
  return dict(
      {{"age", at::arange(first, first + kRows).to(float32)},
       {"city", StringTensor(cities)},
       {"pair", at::arange(2 * kRows).reshape({kRows, 2})},
       {"income", RaggedTensor::from_row_lengths(at::arange(kRows / 2).to(float32), lengths)}});
}

Columns preprocess(const Columns& in) {
  using namespace transform;
  keep_statistic("cities", count_per_key(in["city"]).keys);
  keep_statistic("bins", histogram(in["age"], std::vector<double>{0, 50, 100}).counts);
  keep_statistic("size", size(in["income"]));
  return {{"age", scale_to_z_score(in["age"])},
          {"unit", scale_to_0_1(in["age"])},
          {"pair", scale_to_z_score(in["pair"], {.elementwise = true})},
          {"income", bucketize(log1p(to_dense(in["income"])), 4)},
          {"city", compute_and_apply_vocabulary(
                       in["city"], {.vocab_filename = "city names", .store_frequency = true})},
          {"rare",
           tfidf(apply_vocabulary(split(in["city"]), vocabulary(split(in["city"]))), 4).weights}};
}

std::string analyzed(const TemporaryFolder& folder, const char* name, const Structure& columns) {
  transform::analyze_dataset(transform::batches(columns), preprocess, folder / name);
  return folder / name;
}

TEST(AnalyzedTransform, IsShown) {
  const TemporaryFolder folder;
  const std::string directory = analyzed(folder, "a", people(0, 7));
  std::ostringstream out;
  EXPECT_EQ(show_transform(internal::posix_file_system(), {.directory = directory}, out), kExitOk);
  const std::string text = out.str();
  EXPECT_THAT(text, HasSubstr(": 100 rows analysed by Cohort"));
  EXPECT_THAT(text, HasSubstr("  age     float32 [rows]\n"));
  EXPECT_THAT(text, HasSubstr("  pair    int64 [rows, 2]\n"));
  EXPECT_THAT(text, HasSubstr("  income  ragged float32\n"));
  EXPECT_THAT(text, HasSubstr("z_score(age, mean(age), variance(age)"));
  EXPECT_THAT(text, HasSubstr("width=1)), first(quantiles(..)))\n"));
  EXPECT_THAT(text, HasSubstr("apply_vocabulary(city, vocabulary 'city names', "));
  EXPECT_THAT(text, HasSubstr("  cities  keys(city)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  age +100 +- +49\\.5 +28\\.8661 +0 +99\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  pair at \\[1\\] +100 +- +100 +57\\.7321 +- +-\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  income +- +50 "));
  EXPECT_THAT(text, testing::ContainsRegex("\n  log1p\\(to_dense\\(income.*25%: .*50%: .*75%: "));
  EXPECT_THAT(text, HasSubstr("  'rome': 70, 'bonn': 30\n"));
  EXPECT_THAT(text, HasSubstr("2 keys     'rome': 70 (70%)  'bonn': 30 (30%)\n"));
  EXPECT_THAT(text, HasSubstr("2 bins     0: 50 (50%)       1: 50 (50%)\n"));
  out.str("");
  EXPECT_EQ(
      show_transform(internal::posix_file_system(), {.directory = directory, .json = true}, out),
      kExitOk);
  EXPECT_EQ(nlohmann::json::parse(out.str())["rows"], 100);
}

TEST(AnalyzedTransform, DriftIsFound) {
  const TemporaryFolder folder;
  const std::string a = analyzed(folder, "a", people(0, 7));
  const std::string b = analyzed(folder, "b", people(10, 5));
  const auto compare = [&](const std::string& other, int exit_code) {
    std::ostringstream out;
    EXPECT_EQ(compare_transforms(internal::posix_file_system(), {.a = a, .b = other}, out),
              exit_code);
    return out.str();
  };
  EXPECT_THAT(compare(a, kExitOk),
              AllOf(HasSubstr("functions are equal"), Not(HasSubstr("DRIFT"))));
  const std::string text = compare(b, kExitDifferent);
  EXPECT_THAT(text, HasSubstr("functions are equal"));
  using testing::ContainsRegex;
  EXPECT_THAT(text, ContainsRegex("DRIFT +mean +age +49\\.5 +59\\.5 +0\\.346"));
  EXPECT_THAT(text, ContainsRegex("DRIFT +range +age +0 to 99 +10 to 109 +0\\.101"));
  EXPECT_THAT(text, ContainsRegex("DRIFT +shares +city +'[a-z]+' [0-9]+% +'[a-z]+' 50% +0\\.2"));
  EXPECT_THAT(text, ContainsRegex("\n +mean +pair "));
  EXPECT_THAT(text, Not(ContainsRegex("DRIFT +(mean|variance) +pair")));
}

}  // namespace
}  // namespace cohort::tools
