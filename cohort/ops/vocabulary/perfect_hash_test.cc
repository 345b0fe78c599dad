#include "cohort/ops/vocabulary/perfect_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cohort::internal {
namespace {

uint64_t random_number(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t x = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The keys of each part, ascending.
std::vector<std::vector<uint64_t>> parts_of(const PerfectHash& function, uint64_t keys) {
  std::vector<std::vector<uint64_t>> parts(function.parts);
  uint64_t state = keys;
  for (uint64_t i = 0; i < keys; ++i) {
    const auto place = function.place(random_number(state));
    parts[place.part].push_back(place.mixed);
  }
  for (auto& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

TEST(PerfectHash, GivesEachKeyASlotOfItsOwn) {
  for (const uint64_t keys : {1, 2, 3, 10, 100, 1000, 59'999, 60'001, 200'000}) {
    const PerfectHash function = PerfectHash::for_keys(keys, 0);
    EXPECT_LE(static_cast<double>(function.num_slots()), static_cast<double>(keys) * 1.1 + 2);
    std::vector<uint16_t> pilots(function.num_buckets());
    std::vector<int> taken(function.num_slots());
    PilotSearch search(function);
    uint64_t part = 0;
    for (const std::vector<uint64_t>& mixed : parts_of(function, keys)) {
      ASSERT_LE(mixed.size(), function.most_keys_of_part());
      ASSERT_TRUE(search.find(mixed, &pilots[part++ * function.buckets_per_part])) << keys;
      for (const uint64_t key : mixed) {
        const auto place = function.place_of_mixed(key);
        ++taken.at(function.slot(place, pilots[place.bucket]));
      }
    }
    EXPECT_EQ(*std::max_element(taken.begin(), taken.end()), 1) << keys;
  }
}

TEST(PerfectHash, BucketsFollowTheOrderOfKeys) {
  const PerfectHash function = PerfectHash::for_keys(200'000, 3);
  uint64_t last = 0;
  for (const std::vector<uint64_t>& mixed : parts_of(function, 200'000)) {
    for (const uint64_t key : mixed) {
      const uint64_t bucket = function.place_of_mixed(key).bucket;
      ASSERT_GE(bucket, last);
      last = bucket;
    }
  }
  EXPECT_LT(last, function.num_buckets());
}

// Keys of one bucket that no pilot can tell apart, and more than there are slots, are refused.
TEST(PerfectHash, SaysWhereNoPilotFits) {
  const PerfectHash function = PerfectHash::for_keys(1000, 0);
  std::vector<uint16_t> pilots(function.num_buckets());
  std::vector<uint64_t> crowded;
  for (uint64_t i = 0; i < 100; ++i) crowded.push_back(i);
  EXPECT_FALSE(PilotSearch(function).find(crowded, pilots.data()));
  EXPECT_FALSE(PilotSearch(function).find(std::vector<uint64_t>{5, 5}, pilots.data()));
}

}  // namespace
}  // namespace cohort::internal
