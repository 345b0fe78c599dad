#include "cohort/core/profiler/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/profiler/phase.h"

namespace cohort::profiler {
namespace {

using internal::ScopedPhase;
using std::chrono::nanoseconds;
using ::testing::HasSubstr;

void spend() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// A step with a wait inside: compute, wait, compute.
void step() {
  const ScopedPhase compute(Phase::kCompute);
  spend();
  {
    const ScopedPhase wait(Phase::kWait);
    spend();
  }
  spend();
  internal::count_step();
}

TEST(Profiler, AccountsEachMomentToOnePhase) {
  start();
  step();
  step();
  const Profile profile = stop();
  ASSERT_EQ(profile.threads.size(), 1u);
  const ThreadProfile& mine = profile.threads[0];
  EXPECT_EQ(profile.steps, 2);
  EXPECT_GE(mine.of(Phase::kCompute), std::chrono::microseconds(200));
  EXPECT_GE(mine.of(Phase::kWait), std::chrono::microseconds(100));
  EXPECT_EQ(mine.of(Phase::kInput), nanoseconds(0));
  nanoseconds total{0};
  for (const nanoseconds time : mine.time) total += time;
  EXPECT_LE(total, profile.wall);
  EXPECT_TRUE(mine.events.empty());
}

TEST(Profiler, ASessionKnowsNothingOfTheOneBefore) {
  start();
  step();
  stop();
  start();
  EXPECT_TRUE(stop().threads.empty());
}

TEST(Profiler, PhasesAreOfTheirThread) {
  start();
  step();
  std::thread([] { const ScopedPhase input(Phase::kInput); }).join();
  const Profile profile = stop();
  ASSERT_EQ(profile.threads.size(), 2u);
  EXPECT_EQ(profile.threads[1].of(Phase::kCompute), nanoseconds(0));
}

TEST(Profiler, TraceHoldsThePhasesInOrder) {
  start({.trace = true});
  step();
  const Profile profile = stop();
  const auto& events = profile.threads[0].events;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].phase, Phase::kCompute);
  EXPECT_EQ(events[1].phase, Phase::kWait);
  EXPECT_EQ(events[2].phase, Phase::kCompute);
  EXPECT_EQ(events[0].begin + events[0].duration, events[1].begin);

  const auto path = std::filesystem::temp_directory_path() / "cohort_profiler_test.json";
  profile.write_chrome_trace(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_THAT(text.str(), HasSubstr("\"name\":\"wait\",\"ph\":\"X\""));
  EXPECT_THROW(profile.write_chrome_trace("/nonexistent/trace.json"), NotFoundError);
}

TEST(Profiler, TraceHoldsThePartsOfAPhase) {
  const std::string outer = "outer", inner = "a \"quoted\" part";
  const auto parts = [&] {
    const ScopedPhase compute(Phase::kCompute);
    const internal::ScopedPart around(outer);
    const internal::ScopedPart within(inner);
    spend();
  };
  start({.trace = true});
  parts();
  const Profile profile = stop();
  const auto& found = profile.threads[0].parts;
  ASSERT_EQ(found.size(), 2u);  // in the order of their ends
  EXPECT_EQ(found[0].name, inner);
  EXPECT_EQ(found[1].name, outer);
  EXPECT_LE(found[1].begin, found[0].begin);
  EXPECT_LE(found[0].duration, found[1].duration);
  EXPECT_EQ(profile.threads[0].events.size(), 1u);
  const auto path = std::filesystem::temp_directory_path() / "cohort_profiler_parts_test.json";
  profile.write_chrome_trace(path);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_THAT(text.str(), HasSubstr("\"name\":\"a \\\"quoted\\\" part\",\"ph\":\"X\""));

  start();
  parts();
  EXPECT_TRUE(stop().threads[0].parts.empty());
}

TEST(Profiler, TraceIsBounded) {
  start({.trace = true, .max_trace_events = 2});
  step();
  const std::string name = "part";
  for (int i = 0; i < 5; ++i) const internal::ScopedPart part(name);
  const Profile profile = stop();
  EXPECT_EQ(profile.threads[0].events.size(), 2u);
  EXPECT_EQ(profile.threads[0].parts.size(), 2u);
  EXPECT_GE(profile.threads[0].of(Phase::kCompute), std::chrono::microseconds(100));
}

TEST(Profiler, TableNamesPhasesAndThreads) {
  start();
  step();
  const std::string table = stop().table();
  for (const char* name : {"input", "compute", "reduce", "update", "wait", "other"}) {
    EXPECT_THAT(table, HasSubstr(name));
  }
  EXPECT_THAT(table, HasSubstr("1 steps of"));
}

TEST(Profiler, StartAndStopTakeTurns) {
  EXPECT_THROW(stop(), FailedPreconditionError);
  start();
  EXPECT_THROW(start(), FailedPreconditionError);
  stop();
}

}  // namespace
}  // namespace cohort::profiler
