#include "cohort/ops/plan/plan.h"

#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/profiler/profiler.h"
#include "cohort/ops/kernels/vectors.h"
#include "cohort/ops/plan/testing_plan.h"

namespace cohort::internal::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

// The guide's model.
std::vector<Operation> cnn() {
  return {Convolution{.filters = 32, .size = {3, 3}},
          kRelu,
          MaxPooling{},
          Convolution{.filters = 64, .size = {3, 3}},
          kRelu,
          MaxPooling{},
          Flatten{},
          Dense{.units = 64},
          kRelu,
          Dense{.units = 10}};
}

TEST(Plan, EqualsLibtorchForEveryOperation) {
  for (const int64_t batch : {1, 3, 8, 33}) {
    const std::vector<Case> cases = {
        {{Convolution{.filters = 5, .size = {3, 3}}}, {batch, 7, 9, 4}},
        {{Convolution{.filters = 16, .size = {1, 1}, .bias = false}}, {batch, 5, 5, 3}},
        {{Convolution{.filters = 7, .size = {3, 2}, .strides = {2, 3}}, kRelu}, {batch, 11, 10, 1}},
        {{Convolution{.filters = 8, .size = {3, 3}, .dilation = {2, 1}}}, {batch, 9, 8, 6}},
        {{Convolution{.filters = 4, .size = {3, 3}, .same = true}, kRelu}, {batch, 6, 5, 2}},
        {{Convolution{.filters = 4, .size = {4, 2}, .strides = {2, 1}, .same = true}},
         {batch, 7, 6, 3}},
        {{Convolution{.filters = 33, .size = {3, 3}}, MaxPooling{}}, {batch, 9, 9, 1}},
        {{Convolution{.filters = 6, .size = {3, 3}, .bias = false}, kRelu,
          MaxPooling{{3, 2}, {3, 2}}},
         {batch, 10, 12, 3}},
        {{Convolution{.filters = 32, .size = {5, 5}}, MaxPooling{},
          Convolution{.filters = 3, .size = {3, 3}}, kRelu, MaxPooling{{2, 3}, {2, 3}}},
         {batch, 20, 23, 1}},
        {{Convolution{.filters = 48, .size = {2, 2}, .bias = false},
          Convolution{.filters = 5, .size = {3, 3}, .bias = false}, MaxPooling{}},
         {batch, 14, 12, 2}},
        {{Convolution{.filters = 5, .size = {1, 1}, .strides = {2, 3}}, kRelu}, {batch, 12, 13, 3}},
        {{Convolution{.filters = 16, .size = {1, 1}, .strides = {1, 2}, .same = true}},
         {batch, 8, 9, 1}},
        {{Convolution{.filters = 6, .size = {3, 3}},
          Convolution{.filters = 9, .size = {1, 1}, .strides = {2, 2}}, MaxPooling{},
          Convolution{.filters = 4, .size = {2, 2}}},
         {batch, 20, 18, 2}},
        {{MaxPooling{}, kRelu}, {batch, 7, 6, 5}},
        {{kRelu}, {batch, 5}},
        {{Dense{.units = 6}}, {batch, 4}},
        {{Dense{.units = 130, .bias = false}, kRelu}, {batch, 257}},
        {{Flatten{}, Dense{.units = 3}, kRelu, Dense{.units = 2}}, {batch, 3, 2, 2}},
        {{Dropout{.rate = 0.75}}, {batch, 5, 3}},
        {{AveragePooling{}}, {batch, 6, 7, 3}},
        {{AveragePooling{{3, 2}, {2, 1}, true}}, {batch, 6, 7, 3}},
        {{AveragePooling{{1, 2}, {2, 3}, true}}, {batch, 5, 5, 17}},
        {{Convolution{.filters = 3, .size = {2, 2}}, kRelu, AveragePooling{{2, 2}, {1, 1}},
          GlobalAverage{}, Dense{.units = 4}},
         {batch, 8, 7, 2}},
        {{GlobalAverage{.keeps_axes = true}, Convolution{.filters = 3}}, {batch, 3, 5, 70}},
        {{Normalization{.epsilon = 0.5}}, {batch, 4, 3, 5}},
        {{Normalization{.epsilon = 1, .scale = false}}, {batch, 20}},
        {{Normalization{.epsilon = 1, .center = false, .by_batch = false}}, {batch, 3, 3, 17}},
        {{Normalization{.epsilon = 1, .by_batch = false}}, {batch, 6}},
        {{Convolution{.filters = 6, .size = {3, 3}, .bias = false}, Normalization{.epsilon = 1},
          Activation{Function::kSoftplus}, Convolution{.filters = 3, .size = {2, 2}, .bias = false},
          Normalization{.epsilon = 1}, Activation{Function::kSoftplus}, Flatten{},
          Dense{.units = 3}},
         {batch, 8, 7, 2}},
        {{Reshape{{4, 6, -1}}, Convolution{.filters = 6, .size = {3, 3}}, Reshape{{4, 3, 4}},
          MaxPooling{}, Convolution{.filters = 2, .size = {2, 1}}, Reshape{{1, -1, 2}},
          Convolution{.filters = 2, .size = {1, 1}}},
         {batch, 48}},
        {{Convolution{.filters = 3, .size = {2, 2}}, kRelu, Dropout{.rate = 0.5}, MaxPooling{},
          Flatten{}, Dense{.units = 5}, Dropout{.rate = 0.5}, Dense{.units = 2}},
         {batch, 7, 7, 2}},
    };
    for (const Case& c : cases) EXPECT_EQ(difference_from_libtorch(c), "") << text_of(c);
  }
}

// By features; the kernel's by units and the input's by examples; with parts of two sizes.
TEST(Plan, DividesTheGradientsOfLargeProducts) {
  for (const Case& c : {Case{{Dense{.units = 150}, kRelu}, {70, 530}},
                        Case{{Dense{.units = 530}, kRelu}, {200, 70}},
                        Case{{Dense{.units = 70, .bias = false}}, {530, 70}}}) {
    EXPECT_EQ(difference_from_libtorch(c), "") << text_of(c);
  }
}

TEST(Plan, EqualsLibtorchForEveryActivation) {
  for (const Function function :
       {Function::kRelu, Function::kRelu6, Function::kLeakyRelu, Function::kElu, Function::kSelu,
        Function::kTanh, Function::kSigmoid, Function::kSoftplus, Function::kGelu,
        Function::kSwish}) {
    const Activation activation{function, 0.5};
    const bool takes_maxima = function == Function::kRelu || function == Function::kRelu6;
    for (const int64_t batch : {1, 3, 33}) {
      std::vector<Case> cases = {
          {{activation}, {batch, 3, 7}},
          {{Dense{.units = 5}, activation}, {batch, 4}},
          {{Convolution{.filters = 3, .size = {2, 2}}, activation}, {batch, 5, 4, 2}},
          {{Convolution{.filters = 3, .size = {2, 2}}, MaxPooling{}, activation}, {batch, 7, 6, 1}},
          {{activation, Dropout{.rate = 0.5}}, {batch, 30}},
      };
      // maxima of other functions tie where they round
      if (takes_maxima) cases.push_back({{activation, MaxPooling{}}, {batch, 6, 6, 2}});
      if (takes_maxima) cases.push_back({{Dense{.units = 3}, activation, kRelu}, {batch, 4}});
      for (const Case& c : cases) EXPECT_EQ(difference_from_libtorch(c), "") << text_of(c);
    }
  }
}

// Channels in full vectors, and numbers so small that these, too, are exact.
TEST(Plan, EqualsLibtorchWithFewerProducts) {
  const Convolution convolution{.filters = 16, .size = {3, 3}};
  Convolution same{.filters = 32, .size = {3, 3}, .same = true, .bias = false};
  for (const int64_t batch : {1, 3, 33}) {
    const Case cases[] = {
        {{convolution, kRelu, same, kRelu, MaxPooling{}}, {batch, 11, 13, 16}},
        {{same, kRelu, MaxPooling{}, convolution, Flatten{}, Dense{.units = 3}},
         {batch, 19, 22, 16}},
        {{same, Activation{Function::kTanh}, GlobalAverage{}}, {batch, 7, 9, 32}},
        {{convolution, same, convolution}, {batch, 15, 9, 16}},
    };
    for (const Case& c : cases) EXPECT_EQ(difference_from_libtorch(c), "") << text_of(c);
  }
}

TEST(Plan, FewerProductsOfManyChannelsKeepTheirDigits) {
  const Case c{{Convolution{.filters = 512, .size = {3, 3}, .same = true}}, {4, 4, 4, 512}};
  const Compiled compiled = compile(c, true);
  ASSERT_NE(compiled.plan, nullptr) << compiled.why_not;
  std::vector<Tensor> parameters = random_parameters(c);
  for (Tensor& parameter : parameters) parameter = at::randn(parameter.sizes()) / 20;
  const Tensor input = at::randn(c.input);
  const GradientTape tape;
  const std::vector<Tensor> sources = sources_of(input, parameters);
  std::vector<Tensor> wide;
  for (const Tensor& source : sources) {
    wide.push_back(source.detach().to(at::kDouble).requires_grad_());
  }
  const Tensor ours = run(compiled.plan, input, parameters);
  const Tensor theirs = evaluate(c.operations, wide[0], {wide.begin() + 1, wide.end()});
  EXPECT_EQ(difference(ours, theirs, "values"), "");
  const Tensor weights = at::randn(ours.sizes());
  const std::vector<Tensor> found = torch::autograd::grad({ours}, sources, {weights});
  const std::vector<Tensor> expected =
      torch::autograd::grad({theirs}, wide, {weights.to(at::kDouble)});
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(difference(found[i], expected[i], str("gradient ", i)), "");
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

// The kinds of images of a case's convolutions that may take fewer products: {odd, with padding}.
std::set<std::pair<bool, bool>> images_with_fewer_products(const Case& c) {
  std::set<std::pair<bool, bool>> found;
  Shape shape = c.input;
  for (const Operation& operation : c.operations) {
    const auto* convolution = std::get_if<Convolution>(&operation);
    if (convolution != nullptr && may_have_fewer_products(*convolution, shape)) {
      found.emplace(shape[1] % 2 == 1, convolution->same);
    }
    shape = result_shape(operation, shape);
  }
  return found;
}

TEST(Plan, EqualsLibtorchForRandomModels) {
  std::set<size_t> kinds;  // of operations
  std::set<std::pair<bool, bool>> fewer_products;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
    };
    const Case c = random_case(draw, 9);
    EXPECT_EQ(difference_from_libtorch(c), "") << "seed " << seed << ": " << text_of(c);
    for (const Operation& operation : c.operations) kinds.insert(operation.index());
    fewer_products.merge(images_with_fewer_products(c));
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Operation>);
  EXPECT_EQ(fewer_products.size(), 4u);
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
  std::vector<Operation> normalized = cnn();
  normalized.insert(normalized.begin() + 3, {Normalization{}, Activation{Function::kTanh}});
  // so many weights that several threads transform them
  const std::vector<Operation> wide = {Convolution{.filters = 256, .size = {3, 3}, .same = true},
                                       Convolution{.filters = 256, .size = {3, 3}, .same = true}};
  for (const auto& [operations, shape] :
       {std::pair(cnn(), Shape{8, 28, 28, 1}), std::pair(cnn(), Shape{50, 28, 28, 1}),
        std::pair(normalized, Shape{50, 28, 28, 1}), std::pair(wide, Shape{8, 5, 3, 16})}) {
    const Case c{operations, shape};
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
                          StartsWith("3x3 convolution + bias + relu + 2x2 max-pooling"),
                          "product + bias + relu", "product + bias"));
  if (!has_wide_registers()) return;
  EXPECT_THAT(compiled.plan->describe()[1], EndsWith("pooling, by Winograd's F(2x2, 3x3)"));
  EXPECT_EQ(compile({cnn(), {8, 28, 28, 1}}, true, /*wants_input=*/false).plan->describe()[0],
            "3x3 convolution + bias + relu + 2x2 max-pooling in one pass");
}

TEST(Plan, FusesFunctionsWhoseGradientsNeedTheirResultsAlone) {
  const auto units = [](const std::vector<Operation>& operations, const Shape& input) {
    return compile({operations, input}, true).plan->describe();
  };
  const Convolution convolution{.filters = 2, .size = {3, 3}};
  const Activation tanh{Function::kTanh}, gelu{Function::kGelu};
  EXPECT_THAT(units({Dense{}, tanh, Dense{}, gelu, Dropout{}, kRelu}, {2, 3}),
              ElementsAre("product + bias + tanh", "product + bias", "gelu", "dropout", "relu"));
  EXPECT_THAT(units({convolution, tanh, MaxPooling{}}, {2, 6, 6, 1}),
              ElementsAre("3x3 convolution + bias + tanh", "2x2 max-pooling"));
  EXPECT_THAT(units({convolution, MaxPooling{}, tanh, kRelu}, {2, 6, 6, 1}),
              ElementsAre("3x3 convolution + bias + 2x2 max-pooling", "tanh", "relu"));
}

TEST(Plan, GivesTheStatisticsOfABatch) {
  const Case c{{Convolution{.filters = 3, .size = {2, 2}}, Normalization{}, kRelu, MaxPooling{},
                Normalization{}},
               {37, 7, 7, 2}};
  const Tensor input = random_numbers(kMostInput, c.input);
  const std::vector<Tensor> parameters = random_parameters(c);
  for (const bool records : {true, false}) {
    const Compiled compiled = compile(c, records);
    ASSERT_NE(compiled.plan, nullptr);
    EXPECT_THAT(compiled.plan->describe(),
                ElementsAre("2x2 convolution + bias", "normalization by batch",
                            "2x2 max-pooling + relu", "normalization by batch"));
    std::vector<Tensor> statistics;
    run(compiled.plan, input, parameters, &statistics);
    ASSERT_EQ(statistics.size(), 2u);
    for (const size_t i : {0, 1}) {
      const std::vector<Operation> before(c.operations.begin(),
                                          c.operations.begin() + (i == 0 ? 1 : 4));
      const Tensor x = evaluate(before, input.to(at::kDouble),
                                {parameters[0].to(at::kDouble), parameters[1].to(at::kDouble),
                                 parameters[2].to(at::kDouble), parameters[3].to(at::kDouble)})
                           .flatten(0, -2);
      EXPECT_EQ(compiled.plan->normalized()[i].back(), 3);
      EXPECT_EQ(difference(statistics[i][0], x.mean(0), "mean"), "");
      EXPECT_EQ(difference(statistics[i][1], x.var(0, /*unbiased=*/false), "variance"), "");
    }
  }
}

TEST(Plan, SaysWhyThereIsNone) {
  const auto reason = [](const Case& c) { return compile(c, true).why_not; };
  EXPECT_THAT(reason({{Convolution{.size = {3, 3}}}, {4, 2, 9, 1}}),
              HasSubstr("3x3 convolution does not take [4,2,9,1]"));
  EXPECT_THAT(reason({{Dense{}}, {4, 2, 9}}), HasSubstr("does not take"));
  EXPECT_THAT(reason({{Flatten{}}, {4, 2, 9}}), HasSubstr("nothing"));
  EXPECT_THAT(reason({{Reshape{{2, 5}}}, {4, 2, 9}}), HasSubstr("reshape does not take [4,2,9]"));
  EXPECT_THAT(reason({{Dense{}}, {0, 2}}), HasSubstr("empty"));
  EXPECT_THAT(why_not(MaxPooling{.size = {3, 3}, .strides = {2, 2}}), HasSubstr("overlap"));
  EXPECT_THAT(why_not(MaxPooling{.same = true}), HasSubstr("border"));
  EXPECT_EQ(why_not(MaxPooling{}), "");
  EXPECT_THAT(why_not(Activation{Function::kLeakyRelu, -1}), HasSubstr("slope"));
}

}  // namespace
}  // namespace cohort::internal::plan
