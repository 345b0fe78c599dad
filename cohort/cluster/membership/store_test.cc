#include "cohort/cluster/membership/store.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::membership {
namespace {

const Session kFirst{{"worker", 0}, 1};
const Session kSecond{{"worker", 1}, 2};

StoreRequest entry(std::string key, std::string value) {
  return {.key = std::move(key), .value = std::move(value)};
}

TEST(MembershipStore, SetsComparesAddsAndRemoves) {
  Store store;
  store.set(kFirst, entry("a", "1"));
  EXPECT_EQ(*store.get("a"), "1");
  EXPECT_EQ(store.get("b"), nullptr);
  EXPECT_EQ(store.add(kSecond, {.key = "a", .delta = 41}), 42);
  EXPECT_EQ(store.add(kSecond, {.key = "n", .delta = -1}), -1);
  EXPECT_FALSE(store.compare_and_set(kFirst, entry("a", "x")));  // expected to be absent
  EXPECT_TRUE(store.compare_and_set(kFirst, {.key = "a", .value = "x", .expected = "42"}));
  EXPECT_TRUE(store.compare_and_set(kFirst, entry("c", "")));
  EXPECT_TRUE(store.remove("a"));
  EXPECT_FALSE(store.remove("a"));
  EXPECT_EQ(store.list("", "").keys, (std::vector<std::string>{"c", "n"}));
}

TEST(MembershipStore, ListsByPrefixInPages) {
  Store store;
  for (int i = 0; i < 1500; ++i) store.set(kFirst, entry("k/" + std::to_string(10000 + i), ""));
  store.set(kFirst, entry("j", ""));
  store.set(kFirst, entry("l", ""));
  const StoreReply first = store.list("k/", "");
  EXPECT_EQ(first.keys.size(), kMostListed);
  EXPECT_TRUE(first.more);
  const StoreReply second = store.list("k/", first.keys.back());
  EXPECT_EQ(second.keys.size(), 1500 - kMostListed);
  EXPECT_FALSE(second.more);
}

TEST(MembershipStore, SessionKeysGoWithTheirIncarnation) {
  Store store;
  StoreRequest session = entry("mine", "here");
  session.session = true;
  store.set(kFirst, session);
  store.set(kFirst, entry("ours", "stays"));
  store.end({kFirst.task, 99});
  EXPECT_NE(store.get("mine"), nullptr);
  store.end(kFirst);
  EXPECT_EQ(store.get("mine"), nullptr);
  EXPECT_NE(store.get("ours"), nullptr);
}

TEST(MembershipStore, LimitsNameTheKeyAndChangeNothing) {
  Store store({.keys_per_task = 2, .bytes = 100});
  store.set(kFirst, entry("a", ""));
  store.set(kFirst, entry("b", ""));
  expect_error<ResourceExhaustedError>([&] { store.set(kFirst, entry("c", "")); },
                                       "/job:worker/task:0 has 2 keys");
  store.set(kFirst, entry("b", "again"));
  store.set(kSecond, entry("c", ""));
  store.remove("a");
  store.set(kFirst, entry("d", ""));  // there is room again
  expect_error<ResourceExhaustedError>(
      [&] { store.set(kSecond, entry("e", std::string(99, 'x'))); }, "the store is full: key 'e'");
  expect_error<InvalidArgumentError>([&] { store.set(kFirst, entry("", "")); }, "a key is empty");
  expect_error<InvalidArgumentError>([&] { store.set(kFirst, entry("\x1b\xff", "")); },
                                     "is not UTF-8");
  expect_error<InvalidArgumentError>([&] { store.set(kFirst, entry(std::string(1025, 'k'), "")); },
                                     "1025 bytes");
  EXPECT_EQ(store.size(), 3u);
}

TEST(MembershipStore, AddRefusesWhatIsNoNumber) {
  Store store;
  store.set(kFirst, entry("t", "text"));
  store.set(kFirst, entry("n", "9223372036854775807"));
  expect_error<FailedPreconditionError>([&] { store.add(kFirst, {.key = "t", .delta = 1}); },
                                        "is 'text', which is no number");
  expect_error<OutOfRangeError>([&] { store.add(kFirst, {.key = "n", .delta = 1}); }, "64 bits");
  EXPECT_EQ(*store.get("n"), "9223372036854775807");
}

}  // namespace
}  // namespace cohort::internal::membership
