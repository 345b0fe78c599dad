#include "cohort/ops/sampling/stateless_random.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/random.h"
#include "cohort/ops/sampling/candidate_sampler.h"

namespace cohort::random {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> integers_of(const Tensor& tensor) {
  const Tensor flat = tensor.to(int64).contiguous();
  return {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()};
}

double mean_of(const Tensor& tensor) { return tensor.to(float64).mean().item<double>(); }
double variance_of(const Tensor& tensor) {
  return tensor.to(float64).var(/*unbiased=*/false).item<double>();
}

// Values are those of TensorFlow 2.15.
TEST(StatelessRandom, FollowsFromTheSeedAlone) {
  EXPECT_THAT(integers_of(split({1, 2}, 2)),
              ElementsAre(7464880146280614444, 1591045637757961278, -1057468755545501549,
                          2524363516007002203));
  EXPECT_EQ(fold_in({1, 2}, 7), StatelessSeed(7464880146280614444, 7));
  EXPECT_THAT(integers_of(stateless_shuffle(at::arange(10), {1, 2})),
              ElementsAre(0, 3, 8, 1, 5, 4, 9, 7, 6, 2));
  EXPECT_THAT(integers_of(stateless_uniform_full_int({2}, {1, 2}, int32)),
              ElementsAre(1105988140, 1738052849));
  EXPECT_TRUE(stateless_uniform({5}, constant({1, 2})).equal(stateless_uniform({5}, {1, 2})));
  EXPECT_FALSE(stateless_uniform({5}, {1, 2}).equal(stateless_uniform({5}, {2, 2})));
}

TEST(StatelessRandom, HasItsDistributions) {
  constexpr int64_t kDraws = 40'000;
  const Tensor truncated = stateless_truncated_normal({kDraws}, {3, 4}, {.mean = 1, .stddev = 2});
  EXPECT_NEAR(mean_of(truncated), 1, 0.03);
  EXPECT_LT((truncated - 1).abs().max().item<float>(), 4);
  for (const double alpha : {0.3, 1.0, 7.5}) {
    const Tensor gamma = stateless_gamma({kDraws}, {1, 9}, alpha, 2.0);
    EXPECT_NEAR(mean_of(gamma), alpha / 2, 0.03 * alpha + 0.005);
    EXPECT_NEAR(variance_of(gamma), alpha / 4, 0.06 * alpha);
  }
  for (const double lam : {0.0, 0.7, 9.9, 10.0, 250.0}) {
    const Tensor poisson = stateless_poisson({kDraws}, {2, 9}, lam);
    EXPECT_NEAR(mean_of(poisson), lam, 0.02 * lam);
    EXPECT_NEAR(variance_of(poisson), lam, 0.05 * lam);
  }
  for (const auto& [n, p] : {std::pair(20.0, 0.2), std::pair(100.0, 0.4), std::pair(50.0, 0.9)}) {
    const Tensor binomial = stateless_binomial({kDraws}, {3, 9}, n, p);
    EXPECT_NEAR(mean_of(binomial), n * p, 0.01 * n * p);
    EXPECT_NEAR(variance_of(binomial), n * p * (1 - p), 0.05 * n * p * (1 - p));
    EXPECT_LE(binomial.max().item<int64_t>(), static_cast<int64_t>(n));
  }
}

TEST(StatelessRandom, BroadcastsParameters) {
  const Tensor drawn = stateless_poisson({1000, 2}, {5, 5}, constant({1., 100.}), float64);
  EXPECT_NEAR(mean_of(drawn.select(1, 0)), 1, 0.2);
  EXPECT_NEAR(mean_of(drawn.select(1, 1)), 100, 2);
}

TEST(StatelessRandom, RefusesWhatDoesNotFit) {
  const auto refused = [](auto call) { return thrown<InvalidArgumentError>(call); };
  EXPECT_THAT(refused([] { stateless_uniform({-1}, {1, 2}); }), HasSubstr("stateless_uniform"));
  EXPECT_THAT(refused([] {
                stateless_uniform({2}, {1, 2}, {.maxval = 1.5, .dtype = int32});
              }),
              HasSubstr("whole bounds"));
  EXPECT_THAT(refused([] { stateless_uniform({2}, constant({1, 2, 3})); }), HasSubstr("seed"));
  EXPECT_THAT(refused([] { stateless_normal({2}, {1, 2}, {.dtype = int32}); }), HasSubstr("dtype"));
  EXPECT_THAT(refused([] { stateless_gamma({2}, {1, 2}, 0.0); }), HasSubstr("alpha"));
  EXPECT_THAT(refused([] { stateless_binomial({2}, {1, 2}, 3, 1.5); }), HasSubstr("probs"));
  EXPECT_THAT(refused([] {
                stateless_poisson({2}, {1, 2}, constant({1., 2., 3.}));
              }),
              HasSubstr("3"));
  EXPECT_THAT(refused([] {
                stateless_categorical(constant({1., 2.}), 2, {1, 2});
              }),
              HasSubstr("[batch, classes]"));
}

TEST(Categorical, DrawsByTheProbabilities) {
  set_seed(3);
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const Tensor logits = at::tensor({0.f, 1.0986123f, kNever, 5.f, 5.f, 5.f}).view({2, 3});
  const Tensor drawn = categorical(logits, 20'000);
  EXPECT_NEAR(mean_of(drawn[0].eq(1)), 0.75, 0.02);
  EXPECT_EQ(drawn[0].eq(2).sum().item<int64_t>(), 0);
  EXPECT_NEAR(mean_of(drawn[1].eq(2)), 1.0 / 3, 0.02);
  EXPECT_EQ(categorical(logits, 1, int32).scalar_type(), int32);
}

TEST(CandidateSampler, CountsWhatItIsExpectedToDraw) {
  const Tensor labels = constant({{0}, {9}});
  const SampledCandidates often =
      log_uniform_candidate_sampler(labels, 1, 5000, false, 10, {.seed = 1});
  const auto count = [&](int64_t c) {
    return static_cast<double>(often.sampled_candidates.eq(c).sum().item<int64_t>());
  };
  EXPECT_NEAR(count(0), often.true_expected_count[0][0].item<double>(), 120);
  EXPECT_NEAR(count(9), often.true_expected_count[1][0].item<double>(), 60);
  const SampledCandidates all = uniform_candidate_sampler(labels, 1, 10, true, 10);
  EXPECT_EQ(std::get<0>(all.sampled_candidates.sort()).equal(at::arange(10)), true);
  EXPECT_LE(all.sampled_expected_count.max().item<float>(), 1);
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { uniform_candidate_sampler(labels, 1, 11, true, 10); }),
      HasSubstr("11 unique candidates among 10 classes"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { log_uniform_candidate_sampler(labels, 1, 2, true, 9); }),
      HasSubstr("true_classes from 0 to 9 for 9 classes"));
}

}  // namespace
}  // namespace cohort::random
