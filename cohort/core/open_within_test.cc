#include "cohort/core/open_within.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/simulated_file_system.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kLong = std::chrono::seconds(50), kShort(5);

// A file system that does not answer until it is told to. Never destroyed: threads that were given
// up may still be in it when a test ends.
class AwayFiles {
 public:
  AwayFiles() {
    const auto file = files->create("a");
    file->append("12345678");
    file->close();
  }
  void go_away() {
    files->set_hook([this, answer = back_.get_future().share()](const std::string&) {
      ++waiting;
      answer.wait();
    });
  }
  void come_back() {
    files->set_hook(nullptr);
    back_.set_value();
  }

  SimulatedFileSystem* const files = new SimulatedFileSystem;
  std::atomic<int> waiting = 0;

 private:
  std::promise<void> back_;
};

std::string read_first_four(const ReadableFile& file) {
  std::array<char, 4> bytes{};
  file.read(0, bytes.data(), bytes.size());
  return {bytes.data(), bytes.size()};
}

TEST(OpenWithin, ReadsAsTheFileItself) {
  static auto* const away = new AwayFiles;
  const auto file = open_within(*away->files, "a", kLong);
  EXPECT_EQ(file->size(), 8);
  EXPECT_EQ(read_first_four(*file), "1234");
  EXPECT_THROW(open_within(*away->files, "b", kLong), NotFoundError);
}

TEST(OpenWithin, HoweverOftenItIsTriedFewThreadsWait) {
  static auto* const away = new AwayFiles;
  away->go_away();
  for (int i = 0; i < 10; ++i) {
    EXPECT_THROW(open_within(*away->files, "a", kShort), DeadlineExceededError);
  }
  EXPECT_LE(away->waiting, 4);
  away->come_back();
  EXPECT_EQ(read_first_four(*open_within(*away->files, "a", kLong)), "1234");
}

TEST(OpenWithin, AReadThatWasGivenUpIsWaitedForByTheNext) {
  static auto* const away = new AwayFiles;
  const auto file = open_within(*away->files, "a", milliseconds(20));
  away->go_away();
  for (int i = 0; i < 3; ++i) {
    try {
      read_first_four(*file);
      FAIL() << "a read that never comes back";
    } catch (const DeadlineExceededError& error) {
      EXPECT_THAT(error.what(), HasSubstr("reading 'a' at byte 0 has not come back within 20 ms"));
    }
  }
  EXPECT_EQ(away->waiting, 1);
  away->come_back();
  while (true) {  // the one that was given up comes back first
    try {
      EXPECT_EQ(read_first_four(*file), "1234");
      break;
    } catch (const DeadlineExceededError&) {
      std::this_thread::yield();
    }
  }
}

}  // namespace
}  // namespace cohort::internal
