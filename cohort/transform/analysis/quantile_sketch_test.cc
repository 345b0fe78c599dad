#include "cohort/transform/analysis/quantile_sketch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using testing::ElementsAre;

struct Weighted {
  double value;
  double weight;
};

// How far the ranks of the boundaries are off, as a part of all weight.
double worst_error(std::vector<Weighted> all, const std::vector<double>& boundaries) {
  std::sort(all.begin(), all.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  std::vector<double> up_to = {0};
  for (const Weighted& one : all) up_to.push_back(up_to.back() + one.weight);
  const auto weight_before = [&](auto end) {
    return up_to[static_cast<size_t>(end - all.begin())];
  };
  double worst = 0;
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const double rank =
        static_cast<double>(i + 1) * up_to.back() / static_cast<double>(boundaries.size() + 1);
    const double value = boundaries[i];
    const double below = weight_before(std::partition_point(
        all.begin(), all.end(), [&](const Weighted& one) { return one.value < value; }));
    const double with = weight_before(std::partition_point(
        all.begin(), all.end(), [&](const Weighted& one) { return one.value <= value; }));
    worst = std::max({worst, below - rank, rank - with});
  }
  return worst / up_to.back();
}

std::vector<double> boundaries_of(const std::vector<double>& values, int64_t num_buckets) {
  QuantileSketch sketch(0.01);
  sketch.add(values.data(), static_cast<int64_t>(values.size()), 1);
  return sketch.boundaries(num_buckets);
}

TEST(QuantileSketch, IsExactWhereNothingWasCompacted) {
  std::vector<double> ten(10);
  std::iota(ten.begin(), ten.end(), 1);
  EXPECT_THAT(boundaries_of(ten, 4), ElementsAre(3, 6, 8));
  std::vector<double> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1);
  EXPECT_THAT(boundaries_of(hundred, 4), ElementsAre(26, 51, 76));
  EXPECT_THAT(boundaries_of({1, 2, 3}, 10), ElementsAre(1, 1, 1, 2, 2, 2, 3, 3, 3));
  EXPECT_THAT(boundaries_of({7, 7, 7}, 4), ElementsAre(7, 7, 7));
  EXPECT_THAT(boundaries_of({1, 2}, 2), ElementsAre(2));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(boundaries_of({infinity, 1, 2, 3, NAN, 4, -infinity}, 4), ElementsAre(1, 3, 4));
  EXPECT_THAT(boundaries_of({}, 4), ElementsAre(0, 0, 0));
  EXPECT_THAT(boundaries_of({NAN}, 4), ElementsAre(0, 0, 0));
}

TEST(QuantileSketch, PassesOverWeightsThatAreNotAboveZero) {
  QuantileSketch sketch(0.01);
  for (const double weight : {0.0, -1.0, static_cast<double>(NAN)}) sketch.add(100, weight);
  sketch.add(1, 1);
  sketch.add(2, 2.5);
  EXPECT_EQ(sketch.weight(), 3.5);
  EXPECT_THAT(sketch.boundaries(4), ElementsAre(1, 2, 2));
}

TEST(QuantileSketch, StaysExactForFewDistinctValues) {
  QuantileSketch sketch(0.01);
  std::mt19937 random(1);
  std::vector<Weighted> all;
  std::vector<float> values(300000);
  for (float& value : values) {
    value = static_cast<float>(random() % (1 + random() % 1000));
    all.push_back({value, 1});
  }
  sketch.add(values.data(), static_cast<int64_t>(values.size()), 1);
  EXPECT_EQ(sketch.error(), 0);
  EXPECT_EQ(sketch.weight(), 300000);
  EXPECT_EQ(worst_error(all, sketch.boundaries(100)), 0);
}

// Ways in which values come.
using Generate = std::function<double(int64_t i, std::mt19937& random)>;
const std::pair<const char*, Generate> kShapes[] = {
    {"ascending", [](int64_t i, std::mt19937&) { return static_cast<double>(i); }},
    {"descending", [](int64_t i, std::mt19937&) { return static_cast<double>(-i); }},
    {"zigzag", [](int64_t i, std::mt19937&) { return static_cast<double>(i % 2 == 0 ? i : -i); }},
    {"blocks",
     [](int64_t i, std::mt19937&) { return static_cast<double>(i % 4096 * 100 + i / 4096); }},
    {"uniform", [](int64_t, std::mt19937& random) { return static_cast<double>(random()); }},
    {"heavy tail", [](int64_t, std::mt19937& random) { return std::pow(1e-9 * random(), -2.0); }},
    {"with repeats",
     [](int64_t, std::mt19937& random) {
       return static_cast<double>(random() % 3 == 0 ? random() % 7 : random());
     }},
    {"rare repeats",
     [](int64_t, std::mt19937& random) { return static_cast<double>(random() % 20000); }},
};

TEST(QuantileSketch, IsWithinItsBoundForEveryShapeAndOrderOfMerges) {
  constexpr int64_t kCount = 60000;
  for (const double epsilon : {0.1, 0.02}) {
    for (const auto& [name, generate] : kShapes) {
      for (const bool weighted : {false, true}) {
        std::mt19937 random(3);
        std::vector<QuantileSketch> parts(5, QuantileSketch(epsilon));
        std::vector<Weighted> all;
        for (int64_t i = 0; i < kCount; ++i) {
          const double value = generate(i, random);
          // In a division of its own: some parts get runs of rows, others few ones.
          QuantileSketch& part = parts[i < kCount / 2 ? static_cast<size_t>(i / 7000) : i % 5];
          const double weight =
              weighted ? std::ldexp(1 + random() % 7, -static_cast<int>(random() % 12)) : 1;
          all.push_back({value, weight});
          if (weighted) {
            part.add(value, weight);
          } else {
            part.add(&value, 1, 1);
          }
        }
        while (parts.size() > 1) {
          std::swap(parts[random() % parts.size()], parts.back());
          const QuantileSketch other = parts.back();
          parts.pop_back();
          QuantileSketch& into = parts[random() % parts.size()];
          if (random() % 2 == 0) {
            into.merge(other);
          } else {
            into.add_saved(other.saved(), "a test");
          }
        }
        const double total =
            std::accumulate(all.begin(), all.end(), 0.0,
                            [](double sum, const Weighted& one) { return sum + one.weight; });
        const double error = worst_error(all, parts[0].boundaries(97));
        const double claimed = parts[0].error() / total;
        EXPECT_LE(error, claimed + 1e-12) << name << weighted;
        EXPECT_LE(claimed, epsilon) << name << weighted;
        EXPECT_GT(claimed, 0) << name << weighted << ": the test compacts nothing";
      }
    }
  }
}

TEST(QuantileSketch, TakesMemoryByTheLogarithmOfTheCount) {
  std::mt19937 random(1);
  QuantileSketch sketch(0.01);
  std::vector<float> values(1 << 16);
  size_t at_first = 0;
  for (int i = 0; i < 16; ++i) {
    for (float& value : values) value = static_cast<float>(random());
    sketch.add(values.data(), static_cast<int64_t>(values.size()), 1);
    if (i == 0) at_first = sketch.bytes();
  }
  EXPECT_LT(at_first, size_t{160} << 10);
  EXPECT_LT(sketch.bytes(), size_t{240} << 10);
}

TEST(QuantileSketch, RefusesDamagedBytes) {
  QuantileSketch sketch(0.1);
  expect_error<DataLossError>(
      [&] {
        sketch.add_saved(
            "\x0a\x08"
            "12345678",
            "a sketch");
      },
      "values without weights");
  QuantileSketch other(0.1);
  other.add(1, 1);
  std::string bytes = other.saved();
  bytes.replace(bytes.size() - 8, 8, 8, '\xff');  // the weight is NaN
  expect_error<DataLossError>([&] { sketch.add_saved(bytes, "a sketch"); }, "a value or a weight");
}

}  // namespace
}  // namespace cohort::internal
