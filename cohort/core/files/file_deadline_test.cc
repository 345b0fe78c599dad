#include "cohort/core/files/file_deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr FileDeadline kLong = {std::chrono::seconds(50)}, kShort = {milliseconds(5)};

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
  const auto file = open_within(*away->files, "a", {milliseconds(20)});
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

// A file system whose calls note their threads.
class NotingFiles {
 public:
  explicit NotingFiles(bool remote) : files(new SimulatedFileSystem({.remote = remote})) {
    files->set_content("a", "12345678");
    files->set_hook([this](const std::string&) { threads.push_back(std::this_thread::get_id()); });
  }
  SimulatedFileSystem* const files;
  std::vector<std::thread::id> threads;
};

TEST(OpenWithin, OfThisMachinesFilesOnlyOpeningIsWatchedUnlessAsked) {
  for (const bool remote : {false, true}) {
    for (const bool remote_only : {false, true}) {
      static auto* const kept = new std::vector<NotingFiles*>;
      NotingFiles& noting = *kept->emplace_back(new NotingFiles(remote));
      const auto file = open_within(*noting.files, "a", {std::chrono::seconds(50), remote_only});
      EXPECT_EQ(read_first_four(*file), "1234");
      EXPECT_EQ(file->is_remote(), remote);
      const auto self = std::this_thread::get_id();
      ASSERT_EQ(noting.threads.size(), 2);
      EXPECT_NE(noting.threads[0], self);
      EXPECT_EQ(noting.threads[1] == self, remote_only && !remote);
    }
  }
}

TEST(OpenWithin, AThreadServesOneFileAfterAnother) {
  static auto* const noting = new NotingFiles(true);
  for (int i = 0; i < 20; ++i) read_first_four(*open_within(*noting->files, "a", kLong));
  const std::set<std::thread::id> threads(noting->threads.begin(), noting->threads.end());
  EXPECT_EQ(threads.size(), 1);
}

TEST(OpenWithin, ZeroIsNoDeadline) {
  static auto* const noting = new NotingFiles(true);
  const auto file = open_within(*noting->files, "a", {});
  EXPECT_EQ(noting->threads, std::vector{std::this_thread::get_id()});
}

TEST(CallWithin, GivesUpAndPassesErrorsOn) {
  static auto* const away = new AwayFiles;
  const auto listed = std::make_shared<std::vector<std::string>>();
  const auto list = [listed] { *listed = away->files->list("/"); };
  call_within(kLong, "/", "listing '/'", list);
  EXPECT_EQ(*listed, std::vector<std::string>{"a"});
  EXPECT_THROW(call_within(kLong, "b", "listing 'b'", [] { away->files->list("b"); }),
               NotFoundError);
  away->go_away();
  try {
    call_within(kShort, "/", "listing '/'", list);
    FAIL() << "a call that never comes back";
  } catch (const DeadlineExceededError& error) {
    EXPECT_THAT(error.what(), HasSubstr("listing '/' has not come back within 5 ms"));
  }
  away->come_back();
}

TEST(FileDeadline, OfOptionsIsChecked) {
  EXPECT_TRUE(file_deadline({}, "a dataset").remote_only);
  EXPECT_FALSE(file_deadline(milliseconds(7), "a dataset").remote_only);
  EXPECT_EQ(file_deadline(milliseconds(7), "a dataset").timeout, milliseconds(7));
  EXPECT_EQ(file_deadline(milliseconds::max(), "a dataset").timeout, kLongestWait);
  try {
    file_deadline(milliseconds(-1), "a dataset");
    FAIL() << "a negative timeout";
  } catch (const InvalidArgumentError& error) {
    EXPECT_STREQ(error.what(), "a dataset: read_timeout is -1 ms; it must be at least 0");
  }
}

}  // namespace
}  // namespace cohort::internal
