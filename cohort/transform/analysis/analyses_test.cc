#include "cohort/transform/analysis/analyses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/transform/analysis/testing_analyses.h"

namespace cohort::internal {
namespace {

TEST(Analyses, AreMadeAgainFromKindAndAttributes) {
  const NumericOptions numeric = {.dtype = float64, .reduce_instance_dims = false};
  const std::vector<AnalysisPtr> all = {
      min_and_max_analysis(numeric),
      min_and_max_analysis(),
      sum_analysis(numeric),
      size_analysis(numeric),
      mean_and_variance_analysis(numeric),
      quantiles_analysis({.num_buckets = 7, .epsilon = 1e-3, .weighted = true}),
      quantiles_analysis({.num_buckets = 7, .epsilon = 1, .reduce_instance_dims = false}),
      vocabulary_analysis(),
      vocabulary_analysis({.top_k = 5,
                           .frequency_threshold = 2.5,
                           .weighted = true,
                           .store_frequency = true,
                           .reserved_tokens = {"<pad>", "it's"}}),
      count_per_key_analysis(),
      bucket_counts_analysis(10),
      document_frequencies_analysis()};
  std::vector<std::string> names;
  for (const AnalysisPtr& analysis : all) {
    const AnalysisPtr again = make_analysis(analysis->kind(), analysis->attributes());
    EXPECT_EQ(analysis_name(*again), analysis_name(*analysis));
    EXPECT_EQ(again->num_inputs(), analysis->num_inputs());
    EXPECT_EQ(again->result_names(), analysis->result_names());
    EXPECT_EQ(again->writes_file(), analysis->kind() == "vocabulary");
    EXPECT_THAT(names, testing::Not(testing::Contains(analysis_name(*analysis))));
    names.push_back(analysis_name(*analysis));
  }
  EXPECT_EQ(names[0], "min_and_max(dtype='float64', reduce_instance_dims=false)");
}

TEST(Analyses, HaveTheResultsThatTheyName) {
  AnalysisFolder folder;
  for (const AnalysisPtr& analysis :
       {min_and_max_analysis(), sum_analysis(), size_analysis(), mean_and_variance_analysis(),
        quantiles_analysis({}), vocabulary_analysis(), count_per_key_analysis(),
        bucket_counts_analysis(3), document_frequencies_analysis()}) {
    const AnalysisResult result = analyse(*analysis, {}, folder.context());
    std::vector<std::string> names;
    for (const auto& [name, leaf] : result.constants) names.push_back(name);
    EXPECT_EQ(names, analysis->result_names());
    EXPECT_EQ(result.file.has_value(), analysis->writes_file());
    EXPECT_THROW(result.constant("none"), InternalError);
  }
}

TEST(Analyses, RefuseUnknownKindsAndAttributes) {
  expect_error<InvalidArgumentError>([] { make_analysis("median", {}); },
                                     "no analysis 'median'; those that there are: bucket_counts, ");
  expect_error<InvalidArgumentError>(
      [] {
        make_analysis("sum", {{"axis", int64_t{1}}});
      },
      "the analysis 'sum': it has no attribute 'axis'");
  expect_error<InvalidArgumentError>(
      [] {
        make_analysis("sum", {{"reduce_instance_dims", int64_t{1}}});
      },
      "true or false");
  expect_error<InvalidArgumentError>(
      [] {
        make_analysis("sum", {{"dtype", std::string("bool")}});
      },
      "no analysis takes the dtype 'bool'");
  expect_error<InvalidArgumentError>([] { quantiles_analysis({.num_buckets = 1}); },
                                     "num_buckets must be in [2, 2^24], but got: 1");
  expect_error<InvalidArgumentError>([] { quantiles_analysis({.epsilon = 0}); }, "epsilon");
  expect_error<InvalidArgumentError>([] { make_analysis("bucket_counts", {}); }, "but got: 0");
}

TEST(Quantiles, AreFloat32OfOneRow) {
  const Tensor values = of_vector(std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const auto result = analyse(*quantiles_analysis({.num_buckets = 4}), {{dense(values)}});
  EXPECT_TRUE(result.constant("quantiles")
                  .tensor()
                  .equal(of_vector(std::vector<float>{3, 6, 8}).view({1, 3})));
  EXPECT_EQ(result.constant("error").tensor().item<double>(), 0);
}

TEST(Quantiles, AreOfEachPositionAndWeighted) {
  const Tensor values = of_vector(std::vector<float>{1, 10, 2, 20, 3, 30}).view({3, 2});
  const QuantilesOptions each = {.num_buckets = 3, .weighted = true, .reduce_instance_dims = false};
  const ColumnBatch of_rows = dense(of_vector(std::vector<float>{1, 1, 4}));
  EXPECT_TRUE(analyse(*quantiles_analysis(each), {{dense(values), of_rows}})
                  .constant("quantiles")
                  .tensor()
                  .equal(of_vector(std::vector<float>{3, 3, 30, 30}).view({2, 2})));
  const ColumnBatch of_values = dense(of_vector(std::vector<float>{1, 4, 1, 1, 4, 1}).view({3, 2}));
  EXPECT_TRUE(analyse(*quantiles_analysis(each), {{dense(values), of_values}})
                  .constant("quantiles")
                  .tensor()
                  .equal(of_vector(std::vector<float>{3, 3, 10, 20}).view({2, 2})));
  const ColumnBatch infinite = dense(of_vector(std::vector<double>{1, 1, HUGE_VAL}));
  expect_error<InvalidArgumentError>(
      [&] {
        analyse(*quantiles_analysis(each), {{dense(values), infinite}});
      },
      "infinite");
}

}  // namespace
}  // namespace cohort::internal
