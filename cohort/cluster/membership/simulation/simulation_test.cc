// Thousands of histories of a cluster. A seed that breaks an invariant is printed, and
//   COHORT_SIMULATION_SEED=N membership_test --gtest_filter='MembershipSimulation.*'
// tells its story. COHORT_SIMULATIONS=N runs N histories, COHORT_SIMULATION_FIRST is the first
// seed.
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "cohort/cluster/membership/simulation/cluster_simulation.h"
#include "cohort/cluster/membership/simulation/testing_numbers.h"

namespace cohort::internal::membership {
namespace {

// Within a second or two.
#ifdef __OPTIMIZE__
constexpr uint64_t kHistories = 1500;
constexpr uint64_t kElasticHistories = 500;
#else
constexpr uint64_t kHistories = 100;
constexpr uint64_t kElasticHistories = 50;
#endif

struct Totals {
  uint64_t histories = 0;
  int64_t calls = 0;
  int faults = 0;
  int tasks = 0;
  int lives = 0;
  int64_t stale = 0;
  int deaths = 0;
  int store_calls = 0;
  int barriers = 0;
  int takeovers = 0;
  double longest_takeover_ms = 0;

  void add(const SimulationResult& result) {
    ++histories;
    calls += static_cast<int64_t>(result.calls);
    faults += result.faults;
    tasks += result.tasks;
    lives += result.lives;
    stale += result.stale_refused;
    deaths += result.deaths_checked;
    store_calls += result.store_calls;
    barriers += result.barriers_passed;
    takeovers += result.takeovers;
    longest_takeover_ms = std::max(longest_takeover_ms, result.longest_takeover_ms);
  }
};

std::ostream& operator<<(std::ostream& out, const Totals& totals) {
  return out << totals.histories << " histories: " << totals.faults << " faults, " << totals.lives
             << " processes, " << totals.calls << " calls, " << totals.store_calls
             << " of them to the store, " << totals.barriers << " passed barriers, "
             << totals.deaths << " deaths that all learned of in time, " << totals.stale
             << " stale calls refused, " << totals.takeovers
             << " takeovers, the longest watched one " << totals.longest_takeover_ms << " ms";
}

Totals run(uint64_t first, uint64_t count, int most_faults, bool elastic = false) {
  Totals totals;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const SimulationResult result =
        simulate({.seed = seed, .most_faults = most_faults, .elastic = elastic});
    totals.add(result);
    if (!result.violation.empty()) {
      ADD_FAILURE() << result.violation << "\nCOHORT_SIMULATION_SEED=" << seed << " shows how";
      break;
    }
  }
  return totals;
}

TEST(MembershipSimulation, InvariantsHoldWhateverHappens) {
  if (const uint64_t seed = number_from("COHORT_SIMULATION_SEED", 0)) {
    const SimulationResult result = simulate({.seed = seed, .trace = &std::cerr});
    EXPECT_EQ(result.violation, "");
    return;
  }
  const Totals totals = run(number_from("COHORT_SIMULATION_FIRST", 1),
                            number_from("COHORT_SIMULATIONS", kHistories), 5);
  std::cout << totals << '\n';
  // The histories are of use only if much happens in them.
  EXPECT_GT(totals.faults, static_cast<int>(totals.histories));
  EXPECT_GT(totals.deaths, static_cast<int>(totals.histories / 50));
  EXPECT_GT(totals.barriers, static_cast<int>(totals.histories));
  EXPECT_GT(totals.stale, 0);
}

TEST(MembershipSimulation, AnElasticGroupOutlivesItsService) {
  if (const uint64_t seed = number_from("COHORT_SIMULATION_SEED", 0)) {
    const SimulationResult result = simulate({.seed = seed, .elastic = true, .trace = &std::cerr});
    EXPECT_EQ(result.violation, "");
    return;
  }
  const Totals totals = run(number_from("COHORT_SIMULATION_FIRST", 1),
                            number_from("COHORT_SIMULATIONS", kElasticHistories), 5, true);
  std::cout << totals << '\n';
  EXPECT_GT(totals.faults, static_cast<int>(totals.histories));
  EXPECT_GT(totals.deaths, static_cast<int>(totals.histories / 10));
  EXPECT_GT(totals.takeovers, static_cast<int>(totals.histories / 4));
  EXPECT_GT(totals.stale, 0);
}

TEST(MembershipSimulation, WithoutAFaultNobodyIsLost) {
  const Totals totals = run(900'001, 20, 0);
  EXPECT_EQ(totals.faults, 0);
  EXPECT_EQ(totals.lives, totals.tasks);  // nobody was started again
  const Totals elastic = run(900'001, 20, 0, true);
  EXPECT_EQ(elastic.lives, elastic.tasks);
  EXPECT_EQ(elastic.takeovers, 0);
}

TEST(MembershipSimulation, ASeedTellsTheSameStoryTwice) {
  std::ostringstream first;
  std::ostringstream second;
  simulate({.seed = 73, .trace = &first});
  simulate({.seed = 73, .trace = &second});
  EXPECT_EQ(first.str(), second.str());
  EXPECT_GT(first.str().size(), 1000u);
}

}  // namespace
}  // namespace cohort::internal::membership
