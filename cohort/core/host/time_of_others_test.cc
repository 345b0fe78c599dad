#include "cohort/core/host/time_of_others.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

#include "cohort/core/host/cores.h"

namespace cohort::internal {
namespace {

constexpr std::string_view kStat =
    "cpu  300 0 80 5000 10 0 20 40 0 0\n"
    "cpu0 100 1 30 2500 5 2 10 30 7 0\n"
    "cpu1 200 0 50 2500 5 0 10 10 0 0\n"
    "intr 1 2 3\n";

cpu_set_t cores_of(std::initializer_list<size_t> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const size_t core : cores) CPU_SET(core, &set);
  return set;
}

TEST(BusySeconds, AreThoseOfTheCoresAlone) {
  EXPECT_EQ(busy_seconds(kStat, cores_of({0}), 100), 1.73);
  EXPECT_EQ(busy_seconds(kStat, cores_of({1}), 100), 2.70);
  EXPECT_EQ(busy_seconds(kStat, cores_of({0, 1}), 100), 4.43);
}

TEST(BusySeconds, AreUnknownWhereALineIsMissingOrCutOff) {
  EXPECT_EQ(busy_seconds(kStat, cores_of({2}), 100), std::nullopt);
  EXPECT_EQ(busy_seconds("", cores_of({0}), 100), std::nullopt);
  EXPECT_EQ(busy_seconds("cpu0 100 1 30 25", cores_of({0}), 100), std::nullopt);
  EXPECT_EQ(busy_seconds("cpu0 100 1 30\n", cores_of({0}), 100), std::nullopt);
  EXPECT_EQ(busy_seconds("cpux 1\n", cores_of({0}), 100), std::nullopt);
}

// Others may be at work meanwhile, so that nothing but a bound can be said.
TEST(SecondsForOthers, AreNoneOfThisProcess) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const std::optional<double> before = seconds_for_others();
  if (!before) GTEST_SKIP() << "a quota is set, or the system does not tell";
  const std::clock_t own = std::clock() + CLOCKS_PER_SEC * 3 / 10;
  while (std::clock() < own) {
  }
  const double more = *seconds_for_others() - *before;
  const std::chrono::duration<double> passed = Clock::now() - start;
  const cpu_set_t cores = own_cores();
  constexpr double kTicks = 0.1;
  EXPECT_LE(more, CPU_COUNT(&cores) * (passed.count() + kTicks) - 0.3);
}

}  // namespace
}  // namespace cohort::internal
