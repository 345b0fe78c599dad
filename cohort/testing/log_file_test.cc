#include "cohort/testing/log_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

class LogFileTest : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  void TearDown() override { std::remove(path_.c_str()); }

  LogWaitResult wait(const std::string& pattern, int64_t offset = 0) {
    return wait_for_log_line({.path = path_,
                              .offset = offset,
                              .pattern = std::regex(pattern),
                              .deadline = std::chrono::steady_clock::now()});
  }

  const std::string path_ = ::testing::TempDir() + "log_file_test_" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                            std::to_string(::getpid());
};

TEST_F(LogFileTest, LastLines) {
  EXPECT_EQ(last_lines(path_, 2), "");
  append("one\n");
  EXPECT_EQ(last_lines(path_, 2), "one\n");
  append("two\nthree\n");
  EXPECT_EQ(last_lines(path_, 2), "two\nthree\n");
  EXPECT_EQ(last_lines(path_, 0), "");
  append("four");
  EXPECT_EQ(last_lines(path_, 2), "three\nfour");
  append("\n\n");
  EXPECT_EQ(last_lines(path_, 2), "four\n\n");
}

TEST_F(LogFileTest, FindsACompleteLineAfterTheOffset) {
  append("step 1\nstep 2\nstep 3");
  EXPECT_EQ(wait("ep [12]").line, "step 1");
  EXPECT_EQ(wait("ep [12]", 7).line, "step 2");
  EXPECT_EQ(wait("step 3").end, LogWaitEnd::kWriterEnded);
  append("\n");
  EXPECT_EQ(wait("step 3").line, "step 3");
}

TEST_F(LogFileTest, WakesUpWhenTheLineIsWritten) {
  append("before\n");
  std::thread writer([&] { append("now\n"); });
  // A descriptor that never becomes readable stands for a writer that lives.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto result =
      wait_for_log_line({.path = path_,
                         .pattern = std::regex("now"),
                         .pidfd = ends[0],
                         .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30)});
  writer.join();
  EXPECT_EQ(result.line, "now");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(LogFileTest, MissingFileIsNotFound) { EXPECT_THROW(wait("x"), NotFoundError); }

}  // namespace
}  // namespace cohort::internal
