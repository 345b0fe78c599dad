#include "cohort/train/temporary_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "cohort/core/files/file_system.h"
#include "cohort/train/checkpoint_numbers.h"

namespace cohort::internal {
namespace {

using testing::MatchesRegex;

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

TEST(TemporaryFilesTest, AreNoCheckpoints) {
  char name[] = "/tmp/temporary_files_test.XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string directory = name;
  const std::string temporary = temporary_path(directory, "ckpt-7.index");
  std::ofstream(temporary) << "killed";
  EXPECT_EQ(highest_checkpoint(posix_file_system(), directory), "");
  const std::string whole = join_path(directory, "ckpt-2.index");
  std::ofstream(whole) << "whole";
  EXPECT_EQ(highest_checkpoint(posix_file_system(), directory), join_path(directory, "ckpt-2"));
  std::remove(temporary.c_str());
  std::remove(whole.c_str());
  rmdir(name);
}

TEST(TemporaryFilesTest, OfALivingProcessTheyStay) {
  char name[] = "sleep";
  char seconds[] = "60";
  char* const arguments[] = {name, seconds, nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawnp(&child, name, nullptr, nullptr, arguments, environ), 0);
  EXPECT_FALSE(is_left_over(name_of(child, "ffffffffffff")));
  EXPECT_TRUE(is_left_over(name_of(child, "1"))) << "an earlier process had that number";
  kill(child, SIGKILL);
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  EXPECT_TRUE(is_left_over(name_of(child, "ffffffffffff"))) << "dead, though nobody asked how";
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_left_over(name_of(child, "ffffffffffff")));
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
