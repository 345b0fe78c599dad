#include "cohort/ops/plan/plan.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "cohort/core/intra_op_threads.h"
#include "cohort/core/profiler.h"
#include "cohort/ops/plan/testing_plan.h"
#include "cohort/ops/plan/vectors.h"

namespace cohort::internal::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// The guide's model.
std::vector<Operation> cnn() {
  return {Convolution{.filters = 32, .size = {3, 3}},
          Rectifier{},
          MaxPooling{},
          Convolution{.filters = 64, .size = {3, 3}},
          Rectifier{},
          MaxPooling{},
          Flatten{},
          Dense{.units = 64},
          Rectifier{},
          Dense{.units = 10}};
}

TEST(Plan, EqualsLibtorchForEveryOperation) {
  for (const int64_t batch : {1, 3, 8, 33}) {
    const std::vector<Case> cases = {
        {{Convolution{.filters = 5, .size = {3, 3}}}, {batch, 7, 9, 4}},
        {{Convolution{.filters = 16, .size = {1, 1}, .bias = false}}, {batch, 5, 5, 3}},
        {{Convolution{.filters = 7, .size = {3, 2}, .strides = {2, 3}}, Rectifier{}},
         {batch, 11, 10, 1}},
        {{Convolution{.filters = 8, .size = {3, 3}, .dilation = {2, 1}}}, {batch, 9, 8, 6}},
        {{Convolution{.filters = 4, .size = {3, 3}, .same = true}, Rectifier{}}, {batch, 6, 5, 2}},
        {{Convolution{.filters = 4, .size = {4, 2}, .strides = {2, 1}, .same = true}},
         {batch, 7, 6, 3}},
        {{Convolution{.filters = 33, .size = {3, 3}}, MaxPooling{}}, {batch, 9, 9, 1}},
        {{Convolution{.filters = 6, .size = {3, 3}, .bias = false}, Rectifier{},
          MaxPooling{{3, 2}, {3, 2}}},
         {batch, 10, 12, 3}},
        {{Convolution{.filters = 32, .size = {5, 5}}, MaxPooling{},
          Convolution{.filters = 3, .size = {3, 3}}, Rectifier{}, MaxPooling{{2, 3}, {2, 3}}},
         {batch, 20, 23, 1}},
        {{Convolution{.filters = 48, .size = {2, 2}, .bias = false},
          Convolution{.filters = 5, .size = {3, 3}, .bias = false}, MaxPooling{}},
         {batch, 14, 12, 2}},
        {{Convolution{.filters = 5, .size = {1, 1}, .strides = {2, 3}}, Rectifier{}},
         {batch, 12, 13, 3}},
        {{Convolution{.filters = 16, .size = {1, 1}, .strides = {1, 2}, .same = true}},
         {batch, 8, 9, 1}},
        {{Convolution{.filters = 6, .size = {3, 3}},
          Convolution{.filters = 9, .size = {1, 1}, .strides = {2, 2}}, MaxPooling{},
          Convolution{.filters = 4, .size = {2, 2}}},
         {batch, 20, 18, 2}},
        {{MaxPooling{}, Rectifier{}}, {batch, 7, 6, 5}},
        {{Rectifier{}}, {batch, 5}},
        {{Dense{.units = 6}}, {batch, 4}},
        {{Dense{.units = 130, .bias = false}, Rectifier{}}, {batch, 257}},
        {{Flatten{}, Dense{.units = 3}, Rectifier{}, Dense{.units = 2}}, {batch, 3, 2, 2}},
    };
    for (const Case& c : cases) EXPECT_EQ(difference_from_libtorch(c), "") << text_of(c);
  }
}

// oneDNN's own kernels for such windows write beyond their memory: the heap does not survive this.
TEST(Plan, WindowsWithGapsKeepToTheirImages) {
  for (const int64_t channels : {1, 2, 3, 5, 7, 9, 12, 16, 20}) {
    for (const int64_t batch : {4, 5, 8}) {
      const Case c{{Convolution{.filters = 16, .size = {1, 1}, .strides = {2, 2}}},
                   {batch, 12, 12, channels}};
      EXPECT_EQ(difference_from_libtorch(c), "") << text_of(c);
    }
  }
}

TEST(Plan, EqualsLibtorchForWholeModels) {
  for (const int64_t batch : {1, 5, 8, 64, 100}) {
    EXPECT_EQ(difference_from_libtorch({cnn(), {batch, 28, 28, 1}}), "") << batch;
  }
}

TEST(Plan, EqualsLibtorchForRandomModels) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
    };
    const Case c = random_case(draw, 9);
    EXPECT_EQ(difference_from_libtorch(c), "") << "seed " << seed << ": " << text_of(c);
  }
}

// Results and gradients.
std::vector<Tensor> outcome(const Case& c, const Tensor& input,
                            const std::vector<Tensor>& parameters) {
  const GradientTape tape;
  const std::vector<Tensor> sources = sources_of(input, parameters);
  std::vector<Tensor> all;
  for (const bool wants_input : {true, false}) {
    const Compiled compiled = compile(c, true, wants_input);
    const Tensor output = run(compiled.plan, input, parameters);
    all.push_back(output.detach());
    const std::vector<Tensor> of(sources.begin() + (wants_input ? 0 : 1), sources.end());
    for (const Tensor& gradient : torch::autograd::grad({output.square().sum()}, of)) {
      all.push_back(gradient);
    }
  }
  return all;
}

TEST(Plan, ShowsItsPartsInATrace) {
  const Case c{cnn(), {8, 28, 28, 1}};
  const Tensor input = at::randn(c.input);
  const std::vector<Tensor> parameters = random_parameters(c);
  profiler::start({.trace = true});
  outcome(c, input, parameters);
  const profiler::Profile profile = profiler::stop();
  std::set<std::string> names;
  for (const profiler::ThreadProfile& thread : profile.threads) {
    for (const profiler::TracePart& part : thread.parts) names.insert(part.name);
  }
  EXPECT_THAT(names, IsSupersetOf({"forward: product + bias + relu", "backward: product + bias"}));
}

TEST(Plan, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const int64_t batch : {8, 50}) {
    const Case c{cnn(), {batch, 28, 28, 1}};
    const Tensor input = at::randn(c.input);
    std::vector<Tensor> parameters = random_parameters(c);
    for (Tensor& parameter : parameters) parameter = at::randn(parameter.sizes()) / 10;
    std::vector<Tensor> expected;
    {
      const ScopedIntraOpThreads one(1);
      expected = outcome(c, input, parameters);
    }
    for (const int threads : {2, 3, 5}) {
      const ScopedIntraOpThreads several(threads);
      const std::vector<Tensor> found = outcome(c, input, parameters);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_TRUE(found[i].equal(expected[i])) << i << " on " << threads << " threads";
      }
    }
  }
}

TEST(Plan, ComputesWhatIsReadAndFusesWhatFollows) {
  const Compiled compiled = compile({cnn(), {8, 28, 28, 1}}, true);
  ASSERT_NE(compiled.plan, nullptr) << compiled.why_not;
  EXPECT_THAT(compiled.plan->describe(),
              ElementsAre("3x3 convolution + bias + relu + 2x2 max-pooling, of 26 x 26 of 28 x 28 "
                          "pixels",
                          "3x3 convolution + bias + relu + 2x2 max-pooling",
                          "product + bias + relu", "product + bias"));
  if (!has_wide_registers()) return;
  EXPECT_EQ(compile({cnn(), {8, 28, 28, 1}}, true, /*wants_input=*/false).plan->describe()[0],
            "3x3 convolution + bias + relu + 2x2 max-pooling in one pass");
}

TEST(Plan, SaysWhyThereIsNone) {
  const auto reason = [](const Case& c) { return compile(c, true).why_not; };
  EXPECT_THAT(reason({{Convolution{.size = {3, 3}}}, {4, 2, 9, 1}}),
              HasSubstr("3x3 convolution does not take [4,2,9,1]"));
  EXPECT_THAT(reason({{Dense{}}, {4, 2, 9}}), HasSubstr("does not take"));
  EXPECT_THAT(reason({{Flatten{}}, {4, 2, 9}}), HasSubstr("nothing"));
  EXPECT_THAT(reason({{Dense{}}, {0, 2}}), HasSubstr("empty"));
  EXPECT_THAT(why_not(MaxPooling{.size = {3, 3}, .strides = {2, 2}}), HasSubstr("overlap"));
  EXPECT_THAT(why_not(MaxPooling{.same = true}), HasSubstr("border"));
  EXPECT_EQ(why_not(MaxPooling{}), "");
}

}  // namespace
}  // namespace cohort::internal::plan
