#include "cohort/ops/lookup/key_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(KeyIndex, NumbersKeysInTheirOrder) {
  KeyIndex<std::string_view> index;
  EXPECT_THAT(index.insert("b"), Pair(0, true));
  EXPECT_THAT(index.insert(""), Pair(1, true));
  EXPECT_THAT(index.insert("b"), Pair(0, false));
  EXPECT_EQ(index.find(""), 1);
  EXPECT_EQ(index.find("c"), -1);
  EXPECT_THAT(index.keys(), ElementsAre("b", ""));
}

TEST(KeyIndex, AnEmptyOneFindsNothing) {
  EXPECT_EQ(KeyIndex<int64_t>().find(0), -1);
  EXPECT_EQ(KeyIndex<std::string_view>(1000).find(""), -1);
}

TEST(KeyIndex, KeysMayBeTheLeastAndTheGreatest) {
  KeyIndex<int64_t> index;
  const int64_t keys[] = {0, -1, std::numeric_limits<int64_t>::min(),
                          std::numeric_limits<int64_t>::max()};
  for (const int64_t key : keys) index.insert(key);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(index.find(keys[i]), i);
}

// Given hashes hold as long as the index does not grow.
TEST(KeyIndex, TellsEqualHashesApart) {
  KeyIndex<int64_t> index(10);
  for (int64_t key = 0; key < 10; ++key) EXPECT_THAT(index.insert(key, 7), Pair(key, true));
  for (int64_t key = 0; key < 10; ++key) EXPECT_EQ(index.find(key, 7), key);
  EXPECT_EQ(index.find(10, 7), -1);
}

// In blocks, most of all where the last one is not full.
TEST(KeyIndex, FindsManyAtOnce) {
  std::vector<std::string> words;
  for (int i = 0; i < 10'000; ++i) words.push_back("word " + std::to_string(i));
  KeyIndex<std::string_view> index;
  for (const std::string& word : words) index.insert(word);
  std::vector<std::string_view> keys = {"", "word", "word 10000"};
  keys.insert(keys.end(), words.begin(), words.end());
  for (const int64_t count : {0, 1, 16, 17, 10'003}) {
    std::vector<int64_t> numbers(static_cast<size_t>(count));
    index.find_all(keys.data(), count, numbers.data());
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(numbers[i], i < 3 ? -1 : i - 3);
  }
}

TEST(KeyIndex, FollowsAMapOverManyInsertions) {
  KeyIndex<int64_t> index;
  std::unordered_map<int64_t, int64_t> expected;
  uint64_t state = 1;
  for (int i = 0; i < 50'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto key = static_cast<int64_t>((state >> 33) % 20'000);
    const auto number = static_cast<int64_t>(expected.size());
    const bool is_new = expected.emplace(key, number).second;
    ASSERT_THAT(index.insert(key), Pair(expected.at(key), is_new));
  }
  std::vector<int64_t> keys;
  std::vector<int64_t> numbers;
  for (int64_t key = -5; key < 20'000; ++key) {
    const auto found = expected.find(key);
    keys.push_back(key);
    numbers.push_back(found == expected.end() ? -1 : found->second);
    ASSERT_EQ(index.find(key), numbers.back());
  }
  std::vector<int64_t> all(keys.size());
  index.find_all(keys.data(), static_cast<int64_t>(keys.size()), all.data());
  EXPECT_EQ(all, numbers);
}

}  // namespace
}  // namespace cohort::internal
