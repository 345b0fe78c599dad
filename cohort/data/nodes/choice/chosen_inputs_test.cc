// choose_from_datasets and sample_from_datasets.
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "cohort/core/testing_errors.h"
#include "cohort/data/nodes/shuffle_seeds.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using internal::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Dataset choices(const std::vector<int64_t>& indices) {
  return Dataset::from_tensor_slices(at::tensor(indices));
}

TEST(ChooseFromDatasets, TakesTheNextElementOfTheChosenOne) {
  const Dataset chosen = Dataset::choose_from_datasets(
      {Dataset::range(3), Dataset::range(10, 13), Dataset::range(20, 23)},
      choices({2, 0, 0, 1, 2, 1}));
  EXPECT_THAT(ints(chosen), ElementsAre(20, 0, 1, 10, 21, 11));
  EXPECT_EQ(chosen.cardinality(), kUnknownCardinality);
  EXPECT_THAT(chosen.explain(), HasSubstr("choose_from_datasets(stop_on_empty_dataset=true): "
                                          "TensorSpec(shape=(), dtype=int64)"));
}

TEST(ChooseFromDatasets, EndsOrGoesOnWhereTheChosenOneHasEnded) {
  const std::vector<Dataset> datasets = {Dataset::range(2), Dataset::range(10, 14)};
  const Dataset which = choices({0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1});
  EXPECT_THAT(ints(Dataset::choose_from_datasets(datasets, which)), ElementsAre(0, 10, 1, 11));
  EXPECT_THAT(
      ints(Dataset::choose_from_datasets(datasets, which, {.stop_on_empty_dataset = false})),
      ElementsAre(0, 10, 1, 11, 12, 13));
  // Endless choices: the end is that of all datasets.
  EXPECT_THAT(ints(Dataset::choose_from_datasets(datasets, choices({1, 0, 0}).repeat(),
                                                 {.stop_on_empty_dataset = false})),
              ElementsAre(10, 0, 1, 11, 12, 13));
}

TEST(ChooseFromDatasets, Cardinality) {
  const Dataset endless = Dataset::range(2).repeat();
  const auto size = [&](const Dataset& a, const Dataset& b, const Dataset& which, bool stop) {
    return Dataset::choose_from_datasets({a, b}, which, {.stop_on_empty_dataset = stop})
        .cardinality();
  };
  EXPECT_EQ(size(endless, endless, endless, true), kInfiniteCardinality);
  EXPECT_EQ(size(endless, Dataset::range(2), endless, true), kUnknownCardinality);
  EXPECT_EQ(size(endless, Dataset::range(2), endless, false), kInfiniteCardinality);
  EXPECT_EQ(size(endless, endless, Dataset::range(2), false), kUnknownCardinality);
  EXPECT_EQ(size(endless, endless, Dataset::range(0), true), 0);
}

TEST(ChooseFromDatasets, ErrorsSayWhichChoice) {
  const std::vector<Dataset> two = {Dataset::range(3), Dataset::range(3)};
  expect_error<InvalidArgumentError>([&] { Dataset::choose_from_datasets({}, choices({0})); },
                                     "no datasets");
  expect_error<InvalidArgumentError>(
      [&] { Dataset::choose_from_datasets(two, Dataset::from_tensors(at::ones({2}))); },
      "they must be integer scalars");
  expect_error<InvalidArgumentError>(
      [&] {
        Dataset::choose_from_datasets({two[0], Dataset::from_tensors(at::ones({}))}, choices({0}));
      },
      "choose_from_datasets: the elements of one dataset are");
  const auto all = outcomes(Dataset::choose_from_datasets(two, choices({0, 2, 1})));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_THAT(all[1], HasSubstr("INVALID_ARGUMENT: choose_from_datasets: element 1 of "
                                "choice_dataset: the choice is 2; with 2 datasets it must be in "
                                "[0, 2)"));
}

TEST(ChooseFromDatasets, AnElementThatFailsTakesItsChoiceAlong) {
  const Dataset failing = Dataset::range(3).map([](int64_t x) {
    if (x == 1) throw NotFoundError("no such thing");
    return x;
  });
  const auto all = outcomes(
      Dataset::choose_from_datasets({failing, Dataset::range(10, 12)}, choices({0, 0, 1, 0})));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_THAT(all[1], HasSubstr("NOT_FOUND"));
  EXPECT_EQ(all[2], internal::str(Structure(int64_t{10})));
}

TEST(ChooseFromDatasets, Resumes) {
  for (const bool stop : {true, false}) {
    expect_resumable([&] {
      return Dataset::choose_from_datasets(
          {sequential(Dataset::range(5)), Dataset::range(10, 20).shuffle(4, {.seed = 1})},
          choices({0, 1, 1}).repeat(), {.stop_on_empty_dataset = stop});
    });
  }
}

TEST(SampleFromDatasets, DrawsAsOftenAsTheWeightsSay) {
  const Dataset sampled = Dataset::sample_from_datasets(
      {Dataset::counter(0), Dataset::counter(1'000'000), Dataset::counter(2'000'000)},
      {.weights = {1, 0, 3}, .seed = 7});
  EXPECT_EQ(sampled.cardinality(), kInfiniteCardinality);
  int64_t next_first = 0, next_last = 2'000'000;
  for (const int64_t x : ints(sampled.take(4000))) {
    EXPECT_EQ(x, x < 1'000'000 ? next_first++ : next_last++);  // each in its own order
  }
  EXPECT_NEAR(static_cast<double>(next_first), 1000, 120);  // more than four deviations
}

TEST(SampleFromDatasets, GivesEachElementOnceOrStopsWithOne) {
  const std::vector<Dataset> datasets = {Dataset::range(4), Dataset::range(10, 40),
                                         sequential(Dataset::range(100, 103))};
  const Dataset all = Dataset::sample_from_datasets({datasets[0], datasets[1]}, {.seed = 1});
  EXPECT_EQ(all.cardinality(), 34);
  auto elements = ints(all);
  std::sort(elements.begin(), elements.end());
  auto expected = ints(datasets[0].concatenate(datasets[1]));
  EXPECT_EQ(elements, expected);
  EXPECT_EQ(Dataset::sample_from_datasets(datasets).cardinality(), kUnknownCardinality);

  const Dataset stopped =
      Dataset::sample_from_datasets(datasets, {.seed = 1, .stop_on_empty_dataset = true});
  EXPECT_LT(ints(stopped).size(), 37u);
  EXPECT_EQ(stopped.cardinality(), kUnknownCardinality);
}

TEST(SampleFromDatasets, PassesAndSeeds) {
  const std::vector<Dataset> datasets = {Dataset::range(30), Dataset::range(100, 130)};
  const auto sampled = [&](uint64_t seed, bool rerandomize) {
    return Dataset::sample_from_datasets(datasets,
                                         {.seed = seed, .rerandomize_each_iteration = rerandomize});
  };
  const Dataset same = sampled(1, false), other = sampled(1, true);
  const auto first = ints(same);
  EXPECT_EQ(ints(same), first);
  EXPECT_EQ(ints(other), first);
  EXPECT_NE(ints(other), first);
  EXPECT_NE(ints(sampled(2, false)), first);
  EXPECT_EQ(ints(sampled(1, true).repeat(2)), ints(sampled(1, true).repeat(2)));
  // One that was given no seed gets one on which workers agree, as shuffles do.
  EXPECT_EQ(internal::drawn_seeds(Dataset::sample_from_datasets(datasets).node()).size(), 1u);
  EXPECT_EQ(internal::drawn_seeds(same.node()).size(), 0u);
}

TEST(SampleFromDatasets, WorkersDivideItsElements) {
  const Dataset sampled = Dataset::sample_from_datasets(
      {Dataset::range(7), sequential(Dataset::range(20, 26))}, {.seed = 4});
  const auto whole = ints(sampled);
  std::vector<int64_t> even, odd;
  for (size_t i = 0; i < whole.size(); ++i) (i % 2 == 0 ? even : odd).push_back(whole[i]);
  EXPECT_EQ(ints(auto_shard(sampled, {.num_workers = 2, .index = 0})), even);
  EXPECT_EQ(ints(auto_shard(sampled, {.num_workers = 2, .index = 1})), odd);
}

// The first dataset alone, then both, over and over.
Dataset changing_weights(int64_t draws) {
  return Dataset::range(draws).map([](int64_t i) {
    return Tensor(at::tensor({1.0, i < 3 ? 0.0 : 1.0}));
  });
}

TEST(SampleFromDatasets, WeightsMayBeADataset) {
  const std::vector<Dataset> datasets = {Dataset::counter(0), Dataset::counter(1000)};
  const Dataset sampled =
      Dataset::sample_from_datasets(datasets, changing_weights(203), {.seed = 5});
  EXPECT_EQ(sampled.cardinality(), kUnknownCardinality);
  const auto elements = ints(sampled);
  EXPECT_EQ(elements.size(), 203u) << "one draw for each of the weights";
  EXPECT_THAT(std::vector<int64_t>(elements.begin(), elements.begin() + 3), ElementsAre(0, 1, 2));
  const auto of_second =
      std::count_if(elements.begin(), elements.end(), [](int64_t x) { return x >= 1000; });
  EXPECT_NEAR(static_cast<double>(of_second), 100, 35);
  // A dataset that has ended is drawn no more.
  const Dataset rest = Dataset::sample_from_datasets({Dataset::range(2), Dataset::range(50, 60)},
                                                     changing_weights(100), {.seed = 5});
  EXPECT_EQ(ints(rest).size(), 12u);
  EXPECT_EQ(ints(auto_shard(rest, {.num_workers = 2, .index = 1})), ints(rest.shard(2, 1)));
  EXPECT_THAT(rest.explain(), HasSubstr("sample_from_datasets(weights=read, seed=5)"));
}

TEST(SampleFromDatasets, ReadWeightsResume) {
  expect_resumable([] {
    return Dataset::sample_from_datasets(
               {sequential(Dataset::range(5)), Dataset::range(10, 20).shuffle(4, {.seed = 1})},
               sequential(changing_weights(12)), {.seed = 9, .rerandomize_each_iteration = true})
        .repeat(2);
  });
}

TEST(SampleFromDatasets, WrongReadWeightsAreRefused) {
  const std::vector<Dataset> two = {Dataset::range(3), Dataset::range(3)};
  const auto weights = [](const Tensor& each) { return Dataset::from_tensors(each).repeat(); };
  const auto fails = [&](const Tensor& each, const char* text) {
    expect_error<InvalidArgumentError>(
        [&] { ints(Dataset::sample_from_datasets(two, weights(each))); }, text);
  };
  fails(at::tensor({1.0}), "one for each of 2 datasets");
  fails(at::ones({2}, at::kLong), "must be floating-point numbers");
  fails(at::tensor({1.0, -1.0}), "element 0 of weights: a weight is -1");
  fails(at::tensor({0.0, 0.0}), "all weights are 0");
  expect_error<InvalidArgumentError>(
      [&] {
        Dataset::sample_from_datasets(two, weights(at::tensor({1.0, 1.0})), {.weights = {1, 1}});
      },
      "give one");
  const Dataset stuck = Dataset::sample_from_datasets(two, weights(at::tensor({1.0, 0.0})));
  EXPECT_THAT(outcomes(stuck.take(4)),
              ElementsAre("0", "1", "2", HasSubstr("the last 100000 elements of weights are 0")));
}

TEST(SampleFromDatasets, Errors) {
  const std::vector<Dataset> two = {Dataset::range(3), Dataset::range(3)};
  const auto fails = [&](std::vector<double> weights, const char* text) {
    expect_error<InvalidArgumentError>(
        [&] { Dataset::sample_from_datasets(two, {.weights = std::move(weights)}); }, text);
  };
  fails({1}, "there are 2 datasets, but 1 weights");
  fails({1, -1}, "a weight is -1");
  fails({0, 0}, "all weights are 0");
  expect_error<InvalidArgumentError>([] { Dataset::sample_from_datasets({}); }, "no datasets");
}

TEST(SampleFromDatasets, Resumes) {
  for (const bool stop : {true, false}) {
    expect_resumable([&] {
      return Dataset::sample_from_datasets(
                 {sequential(Dataset::range(5)), Dataset::range(10, 20).shuffle(4, {.seed = 1})},
                 {.weights = {0.3, 0.7},
                  .seed = 9,
                  .stop_on_empty_dataset = stop,
                  .rerandomize_each_iteration = true})
          .repeat(2);
    });
  }
  // The state carries the seed where the program gave none.
  const auto make = [] {
    return Dataset::sample_from_datasets({Dataset::range(20), Dataset::range(50, 70)}).repeat(2);
  };
  auto iterator = make().iterator();
  for (int i = 0; i < 9; ++i) iterator.get_next();
  auto restored = make().iterator();
  restored.restore(iterator.state());
  EXPECT_EQ(ints(restored), ints(iterator));
}

}  // namespace
}  // namespace cohort::data
