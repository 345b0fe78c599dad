#include "cohort/core/host/cores.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace cohort::internal {
namespace {

cpu_set_t cores(std::initializer_list<int> numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int number : numbers) CPU_SET(number, &set);
  return set;
}

bool fits(const std::vector<cpu_set_t>& tasks) { return each_can_have_a_core(tasks); }

TEST(Cores, TasksThatArePinnedToCoresOfTheirOwnHaveThem) {
  EXPECT_TRUE(fits({cores({0}), cores({1})}));
  EXPECT_TRUE(fits({cores({1000}), cores({7}), cores({0})}));
  EXPECT_FALSE(fits({cores({3}), cores({3})}));
}

TEST(Cores, TasksThatShareCoresNeedAsMany) {
  EXPECT_TRUE(fits({cores({0, 1}), cores({0, 1})}));
  EXPECT_FALSE(fits({cores({0, 1}), cores({0, 1}), cores({0, 1})}));
}

TEST(Cores, ATaskWithAChoiceMakesRoom) {
  EXPECT_TRUE(fits({cores({0, 1, 2}), cores({0, 1}), cores({0})}));
  // Four cores in all, but three tasks on two of them.
  EXPECT_FALSE(fits({cores({0, 1}), cores({0, 1}), cores({0, 1}), cores({0, 1, 2, 3})}));
}

std::vector<int> shares(const std::vector<cpu_set_t>& tasks) {
  std::vector<int> all;
  for (size_t task = 0; task < tasks.size(); ++task) all.push_back(share_of_cores(tasks, task));
  return all;
}

TEST(Cores, TasksDivideThoseThatTheyShare) {
  using Shares = std::vector<int>;
  EXPECT_EQ(shares({cores({0, 1, 2, 3})}), Shares{4});
  EXPECT_EQ(shares({cores({0, 1, 2, 3}), cores({0, 1, 2, 3})}), (Shares{2, 2}));
  EXPECT_EQ(shares({cores({0, 1}), cores({2, 3, 4})}), (Shares{2, 3}));  // pinned
  const cpu_set_t three = cores({5, 6, 7});
  EXPECT_EQ(shares({three, three, three}), (Shares{1, 1, 1}));
  EXPECT_EQ(shares({cores({0}), cores({0}), cores({0})}), (Shares{1, 1, 1}));
  EXPECT_EQ(shares({cores({0, 1, 2}), cores({2})}), (Shares{2, 1}));
  EXPECT_EQ(shares({cores({0, 1}), cores({})}), (Shares{2, 0}));
}

TEST(Cores, WhereTheSystemDoesNotTellThereIsNoCore) { EXPECT_FALSE(fits({cores({0}), cores({})})); }

TEST(Cores, AnotherProcessGetsTheSame) {
  const cpu_set_t some = cores({0, 63, 64, CPU_SETSIZE - 1});
  const cpu_set_t got = decode_cores(encode_cores(some));
  EXPECT_TRUE(CPU_EQUAL(&got, &some));
  for (const std::string& bytes : {std::string(), std::string("x"), encode_cores(some) + "x"}) {
    const cpu_set_t none = decode_cores(bytes);
    EXPECT_EQ(CPU_COUNT(&none), 0);
  }
}

TEST(Cores, ThoseOfAThreadAreItsOwn) {
  const cpu_set_t all = own_cores();
  EXPECT_GE(CPU_COUNT(&all), 1);
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  const cpu_set_t one = cores({first});
  cpu_set_t seen = cores({});
  std::thread([&] {
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    seen = own_cores();
  }).join();
  EXPECT_TRUE(CPU_EQUAL(&seen, &one));
}

}  // namespace
}  // namespace cohort::internal
