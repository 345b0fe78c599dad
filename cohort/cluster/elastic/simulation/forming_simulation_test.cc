// Thousands of histories of an elastic group. A seed that breaks an invariant is printed, and
//   COHORT_SIMULATION_SEED=N elastic_test --gtest_filter='FormingSimulation.*'
// tells its story. COHORT_SIMULATIONS=N runs N histories, COHORT_SIMULATION_FIRST is the first
// seed.
#include "cohort/cluster/elastic/simulation/forming_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <string>

#include "cohort/cluster/membership/simulation/testing_numbers.h"

namespace cohort::internal::elastic {
namespace {

// Within a second.
#ifdef __OPTIMIZE__
constexpr uint64_t kHistories = 100;
#else
constexpr uint64_t kHistories = 20;
#endif

struct Totals {
  uint64_t histories = 0;
  FormingResult sum;

  void add(const FormingResult& result) {
    ++histories;
    sum.faults += result.faults;
    sum.tasks += result.tasks;
    sum.lives += result.lives;
    sum.services += result.services;
    sum.records += result.records;
    sum.steps += result.steps;
    sum.refused += result.refused;
    sum.leavers += result.leavers;
    sum.behind += result.behind;
    sum.comers += result.comers;
    sum.apart += result.apart;
    sum.longest_end_ms = std::max(sum.longest_end_ms, result.longest_end_ms);
  }
};

std::ostream& operator<<(std::ostream& out, const Totals& totals) {
  const FormingResult& sum = totals.sum;
  return out << totals.histories << " histories: " << sum.faults << " faults, " << sum.lives
             << " processes of tasks, " << sum.services << " services, " << sum.records
             << " records, " << sum.steps << " steps, " << sum.comers << " tasks that came, "
             << sum.behind << " that were behind, " << sum.leavers << " that left, " << sum.refused
             << " refused, " << sum.apart << " steps of a group that was given up; "
             << static_cast<int64_t>(sum.longest_end_ms)
             << " ms at most from the end of the faults to a step of all";
}

Totals run(uint64_t first, uint64_t count, int most_faults, bool moves = false) {
  Totals totals;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const FormingResult result =
        simulate_forming({.seed = seed, .most_faults = most_faults, .moves = moves});
    totals.add(result);
    if (!result.violation.empty()) {
      ADD_FAILURE() << result.violation << "\nCOHORT_SIMULATION_SEED=" << seed << " shows how";
      break;
    }
  }
  return totals;
}

TEST(FormingSimulation, InvariantsHoldWhateverHappens) {
  using membership::number_from;
  if (const uint64_t seed = number_from("COHORT_SIMULATION_SEED", 0)) {
    const FormingResult result = simulate_forming({.seed = seed, .trace = &std::cerr});
    EXPECT_EQ(result.violation, "");
    return;
  }
  const Totals totals = run(number_from("COHORT_SIMULATION_FIRST", 1),
                            number_from("COHORT_SIMULATIONS", kHistories), 6);
  std::cout << totals << '\n';
  // The histories are of use only if much happens in them.
  const auto histories = static_cast<int>(totals.histories);
  EXPECT_GT(totals.sum.faults, 2 * histories);
  EXPECT_GT(totals.sum.records, 3 * histories);
  EXPECT_GT(totals.sum.services, histories);
  EXPECT_GT(totals.sum.comers, histories);
  EXPECT_GT(totals.sum.behind, histories / 50);
  EXPECT_GT(totals.sum.leavers, histories / 10);
}

TEST(FormingSimulation, InvariantsHoldWhereTheServiceMoves) {
  using membership::number_from;
  if (const uint64_t seed = number_from("COHORT_SIMULATION_SEED", 0)) {
    const FormingResult result =
        simulate_forming({.seed = seed, .moves = true, .trace = &std::cerr});
    EXPECT_EQ(result.violation, "");
    return;
  }
  const Totals totals = run(number_from("COHORT_SIMULATION_FIRST", 1),
                            number_from("COHORT_SIMULATIONS", kHistories), 6, true);
  std::cout << totals << '\n';
  EXPECT_GT(totals.sum.services, static_cast<int>(totals.histories));
}

TEST(FormingSimulation, WithoutAFaultTheFirstGroupGoesOn) {
  const Totals totals = run(900'001, 20, 0);
  EXPECT_EQ(totals.sum.faults, 0);
  EXPECT_EQ(totals.sum.apart, 0);
}

TEST(FormingSimulation, ASeedTellsTheSameStoryTwice) {
  std::ostringstream first;
  std::ostringstream second;
  simulate_forming({.seed = 73, .trace = &first});
  simulate_forming({.seed = 73, .trace = &second});
  EXPECT_EQ(first.str(), second.str());
  EXPECT_GT(first.str().size(), 1000u);
}

}  // namespace
}  // namespace cohort::internal::elastic
