#include "cohort/core/files/simulated_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void write(FileSystem& files, const std::string& path, std::string_view bytes) {
  const auto file = files.create(path);
  file->append(bytes);
  file->sync();
  file->close();
}

std::string read(FileSystem& files, const std::string& path) {
  const auto file = files.open(path);
  std::string bytes(file->size(), '\0');
  file->read(0, bytes.data(), bytes.size());
  return bytes;
}

// The protocol that the interface's opening comment shows.
void replace(FileSystem& files, const std::string& path, std::string_view bytes) {
  write(files, path + ".tmp", bytes);
  files.rename(path + ".tmp", path);
  files.sync_directory(parent_directory(path));
}

TEST(SimulatedFileSystemTest, HoldsFilesAndDirectories) {
  SimulatedFileSystem files;
  files.make_directories("a/b");
  write(files, "a/b/file", "content");
  EXPECT_TRUE(files.exists("a/b"));
  EXPECT_FALSE(files.exists("a/c"));
  EXPECT_EQ(read(files, "/a/./b/../b/file"), "content");
  EXPECT_THAT(files.list("a"), ElementsAre("b"));
  files.rename("a/b/file", "moved");
  EXPECT_THAT(files.file_paths(), ElementsAre("/moved"));
  files.remove("moved");
  EXPECT_THAT(files.file_paths(), IsEmpty());
}

TEST(SimulatedFileSystemTest, FailsAsAFileSystemDoes) {
  SimulatedFileSystem files;
  expect_error<NotFoundError>([&] { files.open("none"); }, "opening 'none' failed: No such file");
  expect_error<NotFoundError>([&] { files.create("none/file"); }, "creating 'none/file'");
  expect_error<NotFoundError>([&] { files.rename("none", "file"); }, "'none' to 'file'");
  expect_error<NotFoundError>([&] { files.remove("none"); }, "ENOENT");
  expect_error<NotFoundError>([&] { files.sync_directory("none"); }, "'none'");
  files.make_directories("directory");
  expect_error<InvalidArgumentError>([&] { files.open("directory"); }, "EISDIR");
  write(files, "file", "123");
  expect_error<NotFoundError>([&] { files.create("file/below"); }, "'file/below'");
  expect_error<AlreadyExistsError>([&] { files.make_directories("file/below"); }, "EEXIST");
  char byte = 0;
  expect_error<DataLossError>([&] { files.open("file")->read(3, &byte, 1); }, "ends after 3 bytes");
}

TEST(SimulatedFileSystemTest, CountsAndNamesEachCall) {
  SimulatedFileSystem files;
  replace(files, "a", "four");
  EXPECT_THAT(files.log(),
              ElementsAre("creating 'a.tmp'", "writing 4 bytes to 'a.tmp'", "syncing 'a.tmp'",
                          "closing 'a.tmp'", "renaming 'a.tmp' to 'a'", "syncing directory '.'"));
  EXPECT_EQ(files.calls(), 6);
}

TEST(SimulatedFileSystemTest, FailsTheCallItWasToldTo) {
  for (int64_t call = 1; call <= 6; ++call) {
    SimulatedFileSystem files;
    files.set_faults({.fail_at = call, .error_number = EIO});
    expect_error<DataLossError>([&] { replace(files, "a", "four"); }, "(EIO)");
    EXPECT_EQ(files.calls(), call);
    EXPECT_EQ(files.exists("a"), call == 6) << "only the sync comes after the rename";
  }
}

TEST(SimulatedFileSystemTest, StaysBrokenIfTold) {
  SimulatedFileSystem files;
  files.set_faults({.fail_at = 2, .error_number = EIO, .stays_broken = true});
  EXPECT_FALSE(files.exists("a"));
  EXPECT_THROW(files.exists("a"), DataLossError);
  EXPECT_THROW(files.exists("a"), DataLossError);
}

TEST(SimulatedFileSystemTest, AFailedAppendStoresHalf) {
  SimulatedFileSystem files;
  files.set_faults({.fail_at = 2, .error_number = ENOSPC});
  const auto file = files.create("a");
  EXPECT_THROW(file->append("12345678"), ResourceExhaustedError);
  EXPECT_EQ(files.content("a"), "1234");
}

TEST(SimulatedFileSystemTest, WhatAFailedSyncLostNoLaterSyncBringsBack) {
  SimulatedFileSystem files;
  files.set_faults({.fail_at = 3});
  const auto file = files.create("a");
  file->append("data");
  EXPECT_THROW(file->sync(), DataLossError);
  file->sync();
  files.sync_directory("/");
  EXPECT_EQ(files.content("a"), "data") << "the page cache has it";
  EXPECT_EQ(files.after_power_cut({.content = Unsynced::kKept})->content("a"), "");
}

TEST(SimulatedFileSystemTest, AKilledProcessMakesNoMoreCalls) {
  SimulatedFileSystem files;
  files.set_faults({.kill_at = 2});
  const auto file = files.create("a");
  EXPECT_THROW(file->append("1234"), SimulatedKill);
  EXPECT_THROW(file->sync(), SimulatedKill);
  EXPECT_THROW(files.exists("a"), SimulatedKill);
  EXPECT_EQ(files.calls(), 2);
  EXPECT_EQ(files.after_kill()->content("a"), "12");
}

TEST(SimulatedFileSystemTest, TheNextProcessFindsWhatWasNotSynced) {
  SimulatedFileSystem files;
  files.create("a")->append("data");
  const auto next = files.after_kill();
  EXPECT_EQ(read(*next, "a"), "data");
  EXPECT_THAT(next->after_power_cut()->file_paths(), IsEmpty()) << "it is as unsafe as before";
  next->remove("a");
  EXPECT_EQ(files.content("a"), "data") << "the two share nothing";
}

TEST(SimulatedFileSystemTest, APowerCutLosesNamesWhoseDirectoryWasNotSynced) {
  SimulatedFileSystem files;
  files.set_content("a", "old");
  write(files, "a.tmp", "new");
  files.rename("a.tmp", "a");
  const auto lost = files.after_power_cut({.entries = Unsynced::kLost});
  EXPECT_EQ(lost->content("a"), "old");
  EXPECT_THAT(lost->file_paths(), ElementsAre("/a")) << "the name a.tmp was not durable either";
  const auto kept = files.after_power_cut({.entries = Unsynced::kKept});
  EXPECT_EQ(kept->content("a"), "new");
  files.sync_directory(".");
  EXPECT_EQ(files.after_power_cut()->content("a"), "new");
}

TEST(SimulatedFileSystemTest, APowerCutLosesContentThatWasNotSynced) {
  SimulatedFileSystem files;
  files.create("a")->append("data");
  files.sync_directory("/");
  EXPECT_EQ(files.after_power_cut({.content = Unsynced::kLost})->content("a"), "");
  EXPECT_EQ(files.after_power_cut({.content = Unsynced::kKept})->content("a"), "data");
}

TEST(SimulatedFileSystemTest, APowerCutBringsBackWhatWasRemovedUnlessItWasSynced) {
  SimulatedFileSystem files;
  files.set_content("a", "data");
  files.remove("a");
  EXPECT_EQ(files.after_power_cut()->content("a"), "data");
  files.sync_directory("/");
  EXPECT_THAT(files.after_power_cut()->file_paths(), IsEmpty());
}

TEST(SimulatedFileSystemTest, AMixedPowerCutReachesEveryOutcomeOfARename) {
  SimulatedFileSystem files;
  files.set_content("a", "old");
  files.set_content("b", "new");
  files.rename("b", "a");
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto after = files.after_power_cut({.entries = Unsynced::kMixed, .seed = seed});
    outcomes.insert(after->content("a") + (after->exists("b") ? " and b" : ""));
  }
  EXPECT_THAT(outcomes, ElementsAre("new", "new and b", "old", "old and b"));
}

TEST(SimulatedFileSystemTest, AMixedPowerCutTearsAFileBySectors) {
  SimulatedFileSystem files;
  const std::string bytes(4096, 'x');
  files.create("a")->append(bytes);
  files.sync_directory("/");
  std::set<std::string> outcomes;
  bool zeros = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const PowerCut cut{.content = Unsynced::kMixed, .seed = seed};
    const std::string found = files.after_power_cut(cut)->content("a");
    EXPECT_EQ(found, files.after_power_cut(cut)->content("a")) << "a seed says all";
    EXPECT_LE(found.size(), bytes.size());
    zeros = zeros || found.find('\0') != std::string::npos;
    outcomes.insert(found);
  }
  EXPECT_GT(outcomes.size(), 10u);
  EXPECT_TRUE(zeros);
}

TEST(SimulatedFileSystemTest, IsFullAtItsCapacity) {
  SimulatedFileSystem files({.capacity_bytes = 10});
  write(files, "a", "123456");
  const auto file = files.create("b");
  expect_error<ResourceExhaustedError>([&] { file->append("12345"); }, "(ENOSPC)");
  EXPECT_EQ(files.content("b"), "1234") << "as much as there was room for";
  files.remove("a");
  file->append("5");
  EXPECT_EQ(files.content("b"), "12345");
}

TEST(SimulatedFileSystemTest, ReservesWhatAFileExpects) {
  SimulatedFileSystem files({.capacity_bytes = 10});
  EXPECT_THROW(files.create("a", {.expected_bytes = 11}), ResourceExhaustedError);
  EXPECT_FALSE(files.exists("a"));
  const auto file = files.create("a", {.expected_bytes = 8});
  EXPECT_THROW(write(files, "b", "123"), ResourceExhaustedError);
  file->append("12345678");
  file->close();
  EXPECT_THROW(file->append("1"), ResourceExhaustedError) << "b has the rest";
  files.set_capacity(100);
  write(files, "b", "123");
}

TEST(SimulatedFileSystemTest, ALockExcludesUntilItIsReleased) {
  SimulatedFileSystem files;
  auto lock = files.lock("lock", "process 1");
  expect_error<FailedPreconditionError>([&] { files.lock("lock", "process 2"); }, "'process 1'");
  EXPECT_EQ(files.lock_holder("lock"), "process 1");
  EXPECT_TRUE(lock->still_valid());
  lock.reset();
  EXPECT_FALSE(files.exists("lock"));
  EXPECT_EQ(files.lock_holder("lock"), std::nullopt);
  lock = files.lock("lock", "process 2");
  files.remove("lock");
  EXPECT_FALSE(lock->still_valid());
}

TEST(SimulatedFileSystemTest, AKilledProcessHoldsNoLock) {
  SimulatedFileSystem files;
  const auto lock = files.lock("lock", "process 1");
  EXPECT_NO_THROW(files.after_kill()->lock("lock", "process 2"));
  EXPECT_NO_THROW(files.after_power_cut()->lock("lock", "process 2"));
}

TEST(SimulatedFileSystemTest, CallsTheHookBeforeEachCall) {
  SimulatedFileSystem files;
  std::vector<std::string> seen;
  files.set_hook([&](const std::string& call) {
    seen.push_back(call);
    if (call == "looking for 'b'") files.set_content("b", "");
  });
  EXPECT_FALSE(files.exists("a"));
  EXPECT_TRUE(files.exists("b"));
  EXPECT_THAT(seen, ElementsAre("looking for 'a'", "looking for 'b'"));
}

TEST(SimulatedFileSystemTest, ReplacingAFileSurvivesAnyPowerCut) {
  for (int64_t call = 1; call <= 7; ++call) {
    SimulatedFileSystem files;
    files.set_content("a", "old");
    files.set_faults({.kill_at = call});
    bool done = false;
    try {
      replace(files, "a", "new content");
      done = true;
    } catch (const SimulatedKill&) {
    }
    EXPECT_EQ(done, call == 7);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::string found =
          files
              .after_power_cut(
                  {.content = Unsynced::kMixed, .entries = Unsynced::kMixed, .seed = seed})
              ->content("a");
      EXPECT_TRUE(found == "new content" || (found == "old" && !done)) << call << ": " << found;
    }
  }
}

}  // namespace
}  // namespace cohort::internal
