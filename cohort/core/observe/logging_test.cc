#include "cohort/core/observe/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <thread>
#include <vector>

namespace cohort {
namespace {

using logging::Level;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class LoggingTest : public ::testing::Test {
 protected:
  void TearDown() override { logging::set_level(Level::kInfo); }

  // What `fn` writes to descriptor 2.
  template <class Fn>
  static std::string written_by(Fn&& fn) {
    ::testing::internal::CaptureStderr();
    fn();
    return ::testing::internal::GetCapturedStderr();
  }
};

// Counts how often it is printed.
struct Costly {
  mutable int* prints;
};
std::ostream& operator<<(std::ostream& out, const Costly& costly) {
  ++*costly.prints;
  return out << "costly";
}

TEST_F(LoggingTest, WritesToStderrWithTheLevel) {
  EXPECT_THAT(written_by([] { internal::log_info("step ", 3); }),
              ContainsRegex("^[0-9-]+ [0-9:.]+ cohort info: step 3\n$"));
  EXPECT_THAT(written_by([] { internal::log_warning("slow"); }), HasSubstr("warning: slow"));
  EXPECT_THAT(written_by([] { internal::log(Level::kError, "lost"); }), HasSubstr("error: lost"));
}

TEST_F(LoggingTest, StartsAtInfo) {
  EXPECT_EQ(logging::level(), Level::kInfo);
  EXPECT_EQ(written_by([] { internal::log(Level::kDebug, "detail"); }), "");
}

TEST_F(LoggingTest, TheLevelDecidesWhatIsWritten) {
  logging::set_level(Level::kWarning);
  EXPECT_EQ(logging::level(), Level::kWarning);
  EXPECT_EQ(written_by([] { internal::log_info("hidden"); }), "");
  EXPECT_THAT(written_by([] { internal::log_warning("shown"); }), HasSubstr("shown"));
  logging::set_level(Level::kDebug);
  EXPECT_THAT(written_by([] { internal::log(Level::kDebug, "detail"); }),
              HasSubstr("debug: detail"));
}

TEST_F(LoggingTest, OffSilencesEverything) {
  logging::set_level(Level::kOff);
  EXPECT_EQ(written_by([] {
              internal::log(Level::kError, "x");
              internal::log(Level::kOff, "x");
            }),
            "");
}

TEST_F(LoggingTest, PartsAreJoinedOnlyIfWritten) {
  int prints = 0;
  EXPECT_EQ(written_by([&] { internal::log(Level::kDebug, Costly{&prints}); }), "");
  EXPECT_EQ(prints, 0);
  EXPECT_THAT(written_by([&] { internal::log_info(Costly{&prints}); }), HasSubstr("costly"));
  EXPECT_EQ(prints, 1);
}

TEST_F(LoggingTest, AMessageIsNoFormat) {
  EXPECT_THAT(written_by([] { internal::log_info("{} {:d} %s {"); }), HasSubstr("{} {:d} %s {\n"));
}

TEST_F(LoggingTest, AMessageCanNeitherForgeALineNorSteerTheTerminal) {
  const std::string text = written_by(
      [] { internal::log_info("name\n2024-01-01 00:00:00.000 cohort error: \x1b[2J\r"); });
  EXPECT_THAT(text, HasSubstr("name\n    2024-01-01"));
  EXPECT_THAT(text, HasSubstr("\\x1b[2J\\x0d"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[2J")));
}

TEST_F(LoggingTest, LinesOfSeveralThreadsStayWhole) {
  const std::string text = written_by([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 25; ++i) internal::log_info("abcdefgh");
      });
    }
    for (auto& thread : threads) thread.join();
  });
  int lines = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line); ++lines) {
    EXPECT_THAT(line, ContainsRegex("^[0-9-]+ [0-9:.]+ cohort info: abcdefgh$"));
  }
  EXPECT_EQ(lines, 100);
}

}  // namespace
}  // namespace cohort
