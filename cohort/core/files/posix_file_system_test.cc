#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/files/posix_writable_file.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_file_size_limit.h"

namespace cohort::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string content(const std::string& path) {
  std::string bytes(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<ptrdiff_t>(bytes.size()));
  return bytes;
}

// Bytes of which no two blocks are alike.
std::string pattern(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

class PosixFileSystemTest : public testing::Test {
 protected:
  PosixFileSystemTest() {
    std::string name = testing::TempDir() + "posix_file_system_test.XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~PosixFileSystemTest() override { fs::remove_all(root_); }

  std::string path(std::string_view name) const { return join_path(root_, name); }
  void write(const std::string& name, std::string_view bytes, const CreateOptions& options = {}) {
    const auto file = files_.create(path(name), options);
    file->append(bytes);
    file->sync();
    file->close();
  }

  FileSystem& files_ = posix_file_system();
  std::string root_;
};

TEST_F(PosixFileSystemTest, WritesAndReadsBack) {
  write("a", "some content");
  const auto file = files_.open(path("a"));
  EXPECT_EQ(file->size(), 12u);
  std::string part(7, ' ');
  file->read(5, part.data(), part.size());
  EXPECT_EQ(part, "content");
  file->read(12, nullptr, 0);
}

TEST_F(PosixFileSystemTest, NobodyElseMayReadANewFile) {
  write("a", "");
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0077, 0u);
}

TEST_F(PosixFileSystemTest, AppendsOfAnySizeArriveInOrder) {
  const std::string bytes = pattern(300'000);
  for (uint64_t expected : {uint64_t{0}, uint64_t{100}, uint64_t{300'000}, uint64_t{1'000'000}}) {
    const auto file = files_.create(path("a"), {.expected_bytes = expected});
    for (size_t at = 0, step = 1; at < bytes.size(); at += step, step = step * 3 % 100'003) {
      file->append(std::string_view(bytes).substr(at, step));
    }
    file->close();
    EXPECT_TRUE(content(path("a")) == bytes) << expected;
  }
}

TEST_F(PosixFileSystemTest, BigFilesArriveWholeHoweverTheyEnd) {
  const std::string bytes = pattern(2 * kBigBufferBytes + 5 * kDirectAlignment + 17);
  for (size_t size : {bytes.size(), 2 * kBigBufferBytes, size_t{1}}) {
    const auto file = files_.create(path("a"), {.expected_bytes = kDirectBytes});
    for (size_t at = 0; at < size; at += 1'000'000) {
      file->append(std::string_view(bytes).substr(at, std::min<size_t>(1'000'000, size - at)));
    }
    file->sync();
    file->close();
    EXPECT_TRUE(content(path("a")) == bytes.substr(0, size)) << size;
  }
}

TEST_F(PosixFileSystemTest, ASyncInTheMiddleOfABigFileLeavesTheRestWhole) {
  const std::string bytes = pattern(kBigBufferBytes + 3'000'001);
  const auto file = files_.create(path("a"), {.expected_bytes = kDirectBytes});
  file->append(std::string_view(bytes).substr(0, 1'234'567));
  file->sync();
  EXPECT_EQ(fs::file_size(path("a")), 1'234'567u);
  file->append(std::string_view(bytes).substr(1'234'567));
  file->close();
  EXPECT_TRUE(content(path("a")) == bytes);
}

TEST_F(PosixFileSystemTest, CreateReplacesALeftOver) {
  write("a", "a left-over that is longer");
  write("a", "new");
  EXPECT_EQ(content(path("a")), "new");
}

TEST_F(PosixFileSystemTest, CreateFollowsNoLink) {
  write("precious", "data");
  fs::create_symlink(path("precious"), path("link"));
  write("link", "new");
  EXPECT_EQ(content(path("precious")), "data");
  EXPECT_EQ(content(path("link")), "new");
}

TEST_F(PosixFileSystemTest, CreateRemovesNothingButFiles) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  fs::create_directory(path("directory"));
  expect_error<InvalidArgumentError>([&] { files_.create(path("pipe")); }, path("pipe"));
  expect_error<InvalidArgumentError>([&] { files_.create(path("directory")); }, "not a regular");
  EXPECT_THAT(files_.list(root_), ElementsAre("directory", "pipe"));
}

TEST_F(PosixFileSystemTest, CreateNamesTheMissingDirectory) {
  expect_error<NotFoundError>([&] { files_.create(path("none/a")); },
                              "creating '" + path("none/a") + "' failed: No such file");
}

TEST_F(PosixFileSystemTest, OpenTakesRegularFilesOnly) {
  expect_error<NotFoundError>([&] { files_.open(path("none")); }, "opening '" + path("none"));
  expect_error<InvalidArgumentError>([&] { files_.open(root_); }, "it is a directory");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expect_error<InvalidArgumentError>([&] { files_.open(path("pipe")); }, "not a regular file");
  expect_error<InvalidArgumentError>([&] { files_.open(path(std::string(300, 'x'))); },
                                     "ENAMETOOLONG");
}

TEST_F(PosixFileSystemTest, AReadBeyondTheEndIsDataLoss) {
  write("a", "12345");
  const auto file = files_.open(path("a"));
  std::array<char, 8> out{};
  expect_error<DataLossError>([&] { file->read(2, out.data(), 4); },
                              "ends after 5 bytes: 4 bytes at offset 2 are missing");
  expect_error<DataLossError>([&] { file->read(~uint64_t{0}, out.data(), 4); }, "ends after 5");
  fs::resize_file(path("a"), 3);
  expect_error<DataLossError>([&] { file->read(0, out.data(), 5); }, "ends after 3 bytes");
}

TEST_F(PosixFileSystemTest, ExistsSaysNoOnlyWhereNothingIs) {
  write("a", "");
  EXPECT_TRUE(files_.exists(path("a")));
  EXPECT_TRUE(files_.exists(root_));
  EXPECT_FALSE(files_.exists(path("none")));
  EXPECT_FALSE(files_.exists(path("a/below")));
  fs::create_symlink("loop", path("loop"));
  expect_error<PermissionDeniedError>([&] { files_.exists(path("loop")); }, "ELOOP");
}

TEST_F(PosixFileSystemTest, RenameReplaces) {
  write("a", "new");
  write("b", "old");
  files_.rename(path("a"), path("b"));
  EXPECT_EQ(content(path("b")), "new");
  EXPECT_FALSE(files_.exists(path("a")));
  expect_error<NotFoundError>([&] { files_.rename(path("a"), path("c")); },
                              "renaming '" + path("a") + "' to '" + path("c") + "' failed");
}

TEST_F(PosixFileSystemTest, RemoveAndList) {
  write("b", "");
  write("a", "");
  fs::create_directory(path("c"));
  EXPECT_THAT(files_.list(root_), ElementsAre("a", "b", "c"));
  files_.remove(path("a"));
  EXPECT_THAT(files_.list(root_), ElementsAre("b", "c"));
  EXPECT_THAT(files_.list(path("c")), IsEmpty());
  expect_error<NotFoundError>([&] { files_.remove(path("a")); }, "removing '" + path("a"));
  expect_error<InvalidArgumentError>([&] { files_.remove(path("c")); }, "EISDIR");
  expect_error<NotFoundError>([&] { files_.list(path("none")); }, "listing '" + path("none"));
  expect_error<NotFoundError>([&] { files_.list(path("b")); }, "ENOTDIR");
}

TEST_F(PosixFileSystemTest, MakesDirectoriesWithTheirParents) {
  files_.make_directories(path("a/b//c/"));
  files_.make_directories(path("a/b/c"));
  EXPECT_TRUE(fs::is_directory(path("a/b/c")));
  files_.make_directories(".");
  files_.make_directories("/");
  write("file", "");
  expect_error<AlreadyExistsError>([&] { files_.make_directories(path("file")); }, path("file"));
  expect_error<AlreadyExistsError>([&] { files_.make_directories(path("file/below")); },
                                   "'" + path("file") + "'");
  expect_error<NotFoundError>([&] { files_.make_directories(""); }, "making directory ''");
}

TEST_F(PosixFileSystemTest, SyncsDirectories) {
  files_.sync_directory(root_);
  expect_error<NotFoundError>([&] { files_.sync_directory(path("none")); }, "'" + path("none"));
  write("file", "");
  expect_error<NotFoundError>([&] { files_.sync_directory(path("file")); }, "ENOTDIR");
}

TEST_F(PosixFileSystemTest, NoSpaceIsFoundBeforeTheFirstByteIsWritten) {
  const FileSizeLimit limit(100'000);
  expect_error<ResourceExhaustedError>(
      [&] { files_.create(path("a"), {.expected_bytes = 100'001}); },
      "reserving 100001 bytes for '" + path("a") + "' failed: File too large (EFBIG)");
  EXPECT_THAT(files_.list(root_), IsEmpty());
}

TEST_F(PosixFileSystemTest, AFileThatFailedStaysFailed) {
  const FileSizeLimit limit(100'000);
  const auto file = files_.create(path("a"));
  expect_error<ResourceExhaustedError>([&] { file->append(std::string(200'000, 'x')); },
                                       "writing to '" + path("a"));
  expect_error<ResourceExhaustedError>([&] { file->append("x"); }, "writing to");
  expect_error<ResourceExhaustedError>([&] { file->sync(); }, "writing to");
  expect_error<ResourceExhaustedError>([&] { file->close(); }, "writing to");
}

TEST_F(PosixFileSystemTest, ABufferedByteThatCannotBeWrittenFailsTheSync) {
  const FileSizeLimit limit(100);
  const auto file = files_.create(path("a"));
  file->append(std::string(101, 'x'));
  expect_error<ResourceExhaustedError>([&] { file->sync(); }, "EFBIG");
}

TEST_F(PosixFileSystemTest, AnErrorOfTheWritingThreadSurfaces) {
  const std::string bytes(3 * kBigBufferBytes, 'x');
  const auto file = files_.create(path("a"), {.expected_bytes = kDirectBytes});
  const FileSizeLimit limit(kBigBufferBytes + 100);
  expect_error<ResourceExhaustedError>(
      [&] {
        file->append(bytes);
        file->append(bytes);
        file->sync();
      },
      "writing to '" + path("a"));
  EXPECT_THROW(file->close(), ResourceExhaustedError);
}

TEST_F(PosixFileSystemTest, AFileGivenUpLeavesItsThreadAndBuffersBehind) {
  for (int i = 0; i < 3; ++i) {
    const auto file = files_.create(path("a"), {.expected_bytes = kDirectBytes});
    file->append(std::string(kBigBufferBytes + 1, 'x'));
  }
  EXPECT_TRUE(files_.exists(path("a")));
}

TEST_F(PosixFileSystemTest, ALockExcludesThisProcessToo) {
  auto lock = files_.lock(path("lock"), "process 1");
  EXPECT_EQ(content(path("lock")), "process 1");
  expect_error<FailedPreconditionError>([&] { files_.lock(path("lock"), "process 2"); },
                                        "'" + path("lock") + "' is locked by 'process 1'");
  EXPECT_TRUE(lock->still_valid());
  lock.reset();
  lock = files_.lock(path("lock"), "me");
  EXPECT_EQ(content(path("lock")), "me") << "nothing is left of the longer name before";
}

TEST_F(PosixFileSystemTest, WhatTheHolderWroteIsEscapedAndBounded) {
  const auto lock = files_.lock(path("lock"), "\x1b[2J" + std::string(100'000, 'x'));
  try {
    files_.lock(path("lock"), "");
    FAIL() << "locked twice";
  } catch (const FailedPreconditionError& error) {
    const std::string text = error.what();
    EXPECT_THAT(text, HasSubstr("\\x1b[2Jxxx"));
    EXPECT_LT(text.size(), 1000u);
  }
}

TEST_F(PosixFileSystemTest, ALockKnowsThatItsFileWasRemovedOrReplaced) {
  const auto lock = files_.lock(path("lock"), "process 1");
  fs::remove(path("lock"));
  EXPECT_FALSE(lock->still_valid());
  const auto second = files_.lock(path("lock"), "process 2");
  EXPECT_FALSE(lock->still_valid());
  EXPECT_TRUE(second->still_valid());
}

TEST_F(PosixFileSystemTest, ALockTakesItsOwnFileWithIt) {
  auto lock = files_.lock(path("lock"), "process 1");
  lock.reset();
  EXPECT_FALSE(fs::exists(path("lock")));
  // What somebody else has put there stays.
  lock = files_.lock(path("lock"), "process 1");
  fs::remove(path("lock"));
  const auto other = files_.lock(path("lock"), "process 2");
  lock.reset();
  EXPECT_TRUE(other->still_valid());
}

// The file that a waiting process has opened may be removed before it locks it.
TEST_F(PosixFileSystemTest, ALockIsNeverHeldOfAFileThatItsHolderHasRemoved) {
  std::atomic<int> holders = 0;
  std::atomic<bool> two_held = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int taken = 0; taken < 200;) {
        try {
          const auto lock = files_.lock(path("lock"), "me");
          if (++holders > 1) two_held = true;
          if (!lock->still_valid()) two_held = true;
          --holders;
          ++taken;
        } catch (const FailedPreconditionError&) {  // another thread holds it
        } catch (const AbortedError&) {             // others have come and gone all the time
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(two_held);
  EXPECT_FALSE(fs::exists(path("lock")));
}

TEST_F(PosixFileSystemTest, AForkedChildLeavesTheLockToItsParent) {
  auto lock = files_.lock(path("lock"), "the parent");
  const pid_t child = ::fork();
  if (child == 0) {
    lock.reset();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(lock->still_valid());
}

TEST_F(PosixFileSystemTest, ALockFollowsNoLinkAndTakesFilesOnly) {
  write("precious", "data");
  fs::create_symlink(path("precious"), path("link"));
  expect_error<PermissionDeniedError>([&] { files_.lock(path("link"), "me"); }, "ELOOP");
  EXPECT_EQ(content(path("precious")), "data");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expect_error<InvalidArgumentError>([&] { files_.lock(path("pipe"), "me"); }, path("pipe"));
}

// A child that makes system calls only: nothing of this process's threads may be needed in it.
pid_t start_lock_holder(const std::string& path, int report_fd) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  const bool held = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::write(fd, "the child", 9) == 9;
  if (held && ::write(report_fd, "!", 1) == 1) ::pause();
  ::_exit(1);
}

TEST_F(PosixFileSystemTest, ALockEndsWithItsProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t child = start_lock_holder(path("lock"), to.get());
  ASSERT_GT(child, 0);
  to.reset();
  char ready = 0;
  EXPECT_EQ(::read(from.get(), &ready, 1), 1);
  expect_error<FailedPreconditionError>([&] { files_.lock(path("lock"), "me"); }, "'the child'");
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(files_.lock(path("lock"), "me")->still_valid());
}

// Above the size at which what is not cached is read past the cache.
TEST(PosixReadableFile, ScansWhatReadReads) {
  const std::string path = testing::TempDir() + "cohort_scan";
  std::string expected(33 << 20, '\0');
  for (size_t i = 0; i < expected.size(); i += 8)
    expected[i] = static_cast<char>(i * 2654435761u >> 13);
  {
    const auto file = posix_file_system().create(path, {.expected_bytes = expected.size()});
    file->append(expected);
    file->sync();
    file->close();
  }
  const int fd = ::open(path.c_str(), O_RDONLY);
  const auto file = posix_file_system().open(path);
  for (const bool cached : {false, true}) {
    if (!cached) ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    for (const auto& [offset, length] : {std::pair<size_t, size_t>(0, expected.size()),
                                         {4097, expected.size() - 5000},
                                         {expected.size() - 10, 10}}) {
      std::string seen;
      file->scan(offset, length, [&](std::string_view block) { seen += block; });
      EXPECT_TRUE(seen == std::string_view(expected).substr(offset, length)) << offset;
    }
    std::string whole(expected.size(), '\0');
    file->read(0, whole.data(), whole.size());  // it is cached now
  }
  EXPECT_THROW(file->scan(1, expected.size(), [](std::string_view) {}), DataLossError);
  EXPECT_THROW(file->scan(0, expected.size(), [](std::string_view) { throw AbortedError("no"); }),
               AbortedError);
  ::close(fd);
  posix_file_system().remove(path);
}

}  // namespace
}  // namespace cohort::internal
