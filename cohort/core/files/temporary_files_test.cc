#include "cohort/core/files/temporary_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cohort/core/files/simulated_file_system.h"

namespace cohort::internal {
namespace {

using testing::MatchesRegex;
using testing::UnorderedElementsAreArray;

// One that lives for a minute, or until it is killed.
pid_t start_process() {
  char name[] = "sleep";
  char seconds[] = "60";
  char* const arguments[] = {name, seconds, nullptr};
  pid_t child = 0;
  return posix_spawnp(&child, name, nullptr, nullptr, arguments, environ) == 0 ? child : 0;
}

// A temporary name of this host's process `pid`, which lived at `seen`.
std::string name_of(pid_t pid, const std::string& seen) {
  const std::string own = base_name(temporary_path("dir", "ckpt-1.data"));
  const size_t place_end = own.find('.', kTemporaryPrefix.size());
  return own.substr(0, place_end + 1) + std::to_string(pid) + "." + seen + "-ckpt-1.data";
}

TEST(TemporaryFilesTest, NamesCarryTheirWriterAndFitAnyFileSystem) {
  EXPECT_THAT(temporary_path("dir", "ckpt-1.data"),
              MatchesRegex("dir/\\.cohort-tmp-[0-9a-f]+\\." + std::to_string(getpid()) +
                           "\\.[0-9a-f]+-ckpt-1\\.data"));
  EXPECT_EQ(temporary_path("dir", "a"), temporary_path("dir", "a"));
  EXPECT_LE(base_name(temporary_path("dir", std::string(255, 'x'))).size(), 220U);
  EXPECT_THAT(temporary_path("dir", std::string(250, 'x') + ".index"),
              testing::EndsWith("x.index"));
}

TEST(TemporaryFilesTest, OfALivingProcessTheyStay) {
  const pid_t child = start_process();
  ASSERT_GT(child, 0);
  EXPECT_FALSE(is_left_over(name_of(child, "ffffffffffff")));
  EXPECT_TRUE(is_left_over(name_of(child, "1"))) << "an earlier process had that number";
  kill(child, SIGKILL);
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_TRUE(is_left_over(name_of(child, "ffffffffffff"))) << "dead, though nobody asked how";
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_left_over(name_of(child, "ffffffffffff")));
}

TEST(TemporaryFilesTest, WithoutALockEachIsAnother) {
  const std::string first = unlocked_temporary_path("dir", std::string(255, 'x'));
  EXPECT_NE(first, unlocked_temporary_path("dir", std::string(255, 'x')));
  EXPECT_LE(base_name(first).size(), 220U);
  EXPECT_FALSE(is_left_over(base_name(first)));
}

TEST(TemporaryFilesTest, WithoutALockOnlyThoseOfEndedProcessesOfThisHostGo) {
  const pid_t child = start_process();
  ASSERT_GT(child, 0);
  const auto unlocked = [](pid_t pid, const std::string& seen) {
    return std::string(kUnlockedPrefix) + name_of(pid, seen).substr(kTemporaryPrefix.size());
  };
  const std::vector<std::string> kept = {base_name(unlocked_temporary_path("", "a")),
                                         unlocked(child, "ffffffffffff"),
                                         ".cohort-unfinished-0.1.1-of-another-host",
                                         ".cohort-unfinished-by-somebody",
                                         "a",
                                         name_of(child, "1")};
  SimulatedFileSystem files;
  for (const std::string& name : kept) files.create(name);
  files.create(unlocked(child, "1"));     // an earlier process had that number,
  files.create(unlocked(getpid(), "1"));  // and one this one's
  files.make_directories(unlocked(child, "2") + "/part");
  files.create(unlocked(child, "2") + "/part/a");
  remove_unlocked_left_overs(files, "");
  EXPECT_THAT(files.list(""), UnorderedElementsAreArray(kept));
  remove_unlocked_left_overs(files, "nowhere");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  remove_unlocked_left_overs(files, "");
  EXPECT_FALSE(files.exists(unlocked(child, "ffffffffffff")));
}

TEST(TemporaryFilesTest, OthersGo) {
  EXPECT_TRUE(is_left_over(base_name(temporary_path("dir", "ckpt-1.data"))))
      << "of this process: nobody saves while its directory is being taken";
  EXPECT_TRUE(is_left_over(".cohort-tmp-0.1.ffffffffffff-of-another-host"));
  EXPECT_TRUE(is_left_over(".cohort-tmp-ckpt-7.data")) << "of an earlier version";
  EXPECT_TRUE(is_left_over(".cohort-tmp-"));
  EXPECT_FALSE(is_left_over("ckpt-7.index"));
}

}  // namespace
}  // namespace cohort::internal
