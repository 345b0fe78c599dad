#include "cohort/core/host/cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cohort/core/error.h"
#include "cohort/core/testing_folder.h"
#include "cohort/core/testing_fork.h"
#include "cohort/core/threads/thread_pool.h"

namespace cohort::internal {
namespace {

using testing::Eq;
using testing::Optional;

// A tree of groups, and a process in one of them.
struct CgroupsTest : testing::Test {
  // Adds a line to mountinfo, for a folder of this test.
  void mount(const std::string& root, const std::string& point, const std::string& type,
             const std::string& options) {
    std::filesystem::create_directories(folder / point);
    mounts += str("30 23 0:26 ", root, ' ', folder / point, " rw,nosuid shared:4 - ", type, ' ',
                  type, ' ', options, '\n');
    folder.write("proc/mountinfo", mounts);
  }
  void be_in(const std::string& groups) { folder.write("proc/cgroup", groups); }
  Cgroups groups() const { return Cgroups(folder / "proc"); }
  double cores() const {
    const std::optional<CpuQuota> quota = groups().cpu_quota();
    return quota ? quota->cores : -1;
  }

  TemporaryFolder folder;
  std::string mounts;
};

TEST_F(CgroupsTest, VersionTwoTakesTheLeastOfAllLevels) {
  mount("/", "sys", "cgroup2", "rw");
  be_in("0::/slice/job/step\n");
  folder.write("sys/slice/cpu.max", "max 100000\n");
  folder.write("sys/slice/job/cpu.max", "50000 100000\n");
  folder.write("sys/slice/job/step/cpu.max", "300000 100000\n");
  EXPECT_EQ(cores(), 0.5);
  folder.write("sys/slice/job/memory.max", "max\n");
  EXPECT_EQ(groups().memory_limit(), std::nullopt);
  folder.write("sys/slice/memory.max", "536870912\n");
  folder.write("sys/slice/job/step/memory.max", "1073741824\n");
  EXPECT_THAT(groups().memory_limit(), Optional(Eq(int64_t{512} << 20)));
  EXPECT_EQ(groups().oom_kills(), std::nullopt);
  folder.write("sys/slice/job/step/memory.events", "low 0\noom 3\noom_kill 2\n");
  EXPECT_THAT(groups().oom_kills(), Optional(Eq(2)));
}

TEST_F(CgroupsTest, VersionOneHasAMountForEachController) {
  mount("/docker/4711", "cpu", "cgroup", "rw,cpu,cpuacct");
  mount("/", "memory", "cgroup", "rw,memory");
  be_in("11:memory:/a\n4:cpu,cpuacct:/docker/4711/inner\n1:name=systemd:/\n0::/\n");
  folder.write("cpu/inner/cpu.cfs_quota_us", "-1\n");
  folder.write("cpu/inner/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), -1);
  folder.write("cpu/cpu.cfs_quota_us", "250000\n");
  folder.write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), 2.5);
  folder.write("memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(groups().memory_limit(), std::nullopt);
  folder.write("memory/memory.limit_in_bytes", "4096\n");
  EXPECT_THAT(groups().memory_limit(), Optional(Eq(4096)));
  folder.write("memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n");
  EXPECT_THAT(groups().oom_kills(), Optional(Eq(7)));
}

// Docker shows a process its own group as the top of what is mounted.
TEST_F(CgroupsTest, ANamespaceBeginsAtItsOwnGroup) {
  mount("/", "sys\\040with\\040space", "cgroup2", "rw");
  std::filesystem::create_directory(folder / "sys with space");
  folder.write("sys with space/cpu.max", "150000 100000\n");
  for (const char* group : {"0::/\n", "0::/../../elsewhere\n", "0::/gone\n"}) {
    be_in(group);
    EXPECT_EQ(cores(), 1.5) << group;
  }
}

TEST_F(CgroupsTest, WhatCannotBeReadIsNoLimit) {
  EXPECT_EQ(Cgroups(folder / "none").cpu_quota().has_value(), false);
  mount("/", "sys", "cgroup2", "rw");
  for (const char* group : {"", "x", "0:", "0::", "0::/a", ":::::"}) {
    be_in(group);
    for (const char* text : {"", "max", "0 100000", "-5 7", "1 0", "a b", "1 2 3", "\n1 2"}) {
      folder.write("sys/cpu.max", text);
      EXPECT_EQ(cores(), -1) << group << "; " << text;
    }
  }
}

TEST_F(CgroupsTest, ProcessesOfOneQuotaKnowItByItsGroup) {
  mount("/", "sys", "cgroup2", "rw");
  be_in("0::/job/one\n");
  folder.write("sys/job/cpu.max", "200000 100000\n");
  folder.write("sys/job/one/cpu.max", "max 100000\n");
  folder.write("sys/job/two/cpu.max", "100000 100000\n");
  const std::string group = groups().cpu_quota()->group;
  be_in("0::/job\n");
  EXPECT_EQ(groups().cpu_quota()->group, group);
  be_in("0::/job/two\n");
  EXPECT_NE(groups().cpu_quota()->group, group);
}

TEST(CoresUnderTest, RoundsUpAndIsAtLeastOne) {
  EXPECT_EQ(cores_under(std::nullopt, 8), 8);
  EXPECT_EQ(cores_under(std::nullopt, 0), 1);
  EXPECT_EQ(cores_under(CpuQuota{.cores = 0.5}, 8), 1);
  EXPECT_EQ(cores_under(CpuQuota{.cores = 1.5}, 8), 2);
  EXPECT_EQ(cores_under(CpuQuota{.cores = 1e12}, 8), 8);
}

TEST(ShareOfQuotaTest, IsThatOfOneOfItsProcesses) {
  EXPECT_EQ(share_of_quota(std::nullopt, 0, 4), 4);
  EXPECT_EQ(share_of_quota(CpuQuota{.cores = 2}, 2, 32), 1);
  EXPECT_EQ(share_of_quota(CpuQuota{.cores = 4}, 2, 32), 2);
  EXPECT_EQ(share_of_quota(CpuQuota{.cores = 0.5}, 3, 32), 1);
  EXPECT_EQ(share_of_quota(CpuQuota{.cores = 64}, 2, 4), 4);
  EXPECT_EQ(share_of_quota(CpuQuota{.cores = 2}, 2, 0), 0);
}

// A group of this machine, where this user may make one.
TEST(CgroupsOfThisMachineTest, AQuotaOfTheKernelIsRead) {
  const std::string top = "/sys/fs/cgroup/cpu";
  const std::string group = str(top, "/cohort_cgroups_test_", ::getpid());
  if (!std::filesystem::exists(top + "/cpu.cfs_quota_us") || ::mkdir(group.c_str(), 0755) != 0) {
    GTEST_SKIP() << "no group can be made in " << top;
  }
  std::ofstream(group + "/cpu.cfs_period_us") << "100000";
  std::ofstream(group + "/cpu.cfs_quota_us") << "50000";
  const std::string cores = in_forked_child([&]() -> std::string {
    std::ofstream(group + "/cgroup.procs") << std::to_string(::getpid()) << std::flush;
    const std::optional<CpuQuota> quota = Cgroups().cpu_quota();
    return quota ? str(quota->cores, " cores, ", num_usable_cores(), " thread") : "no quota";
  });
  EXPECT_EQ(::rmdir(group.c_str()), 0) << group;
  EXPECT_EQ(cores, "0.5 cores, 1 thread");
}

}  // namespace
}  // namespace cohort::internal
