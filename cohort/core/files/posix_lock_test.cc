// Locks where the file system has none: flock fails as those of Lustre and NFS let it.
#include "cohort/core/files/posix_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_folder.h"

namespace {

std::atomic<int> error_of_flock{0};

}  // namespace

// In place of the C library's, for this program.
extern "C" int flock(int fd, int operation) noexcept {
  if (const int error = error_of_flock) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}

namespace cohort::internal {
namespace {

using ::testing::HasSubstr;

struct PosixLockTest : ::testing::Test {
  ~PosixLockTest() override { error_of_flock = 0; }
  const TemporaryFolder folder;
};

TEST_F(PosixLockTest, AFileSystemWithoutLocksKeepsNobodyOutAndSaysSoOnce) {
  ::testing::internal::CaptureStderr();
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP, 524}) {
    error_of_flock = error;
    const auto lock = posix_lock(folder / "lock", "process 1");
    EXPECT_TRUE(lock->still_valid()) << error;
    std::string owner;
    std::getline(std::ifstream(folder / "lock"), owner);
    EXPECT_EQ(owner, "process 1") << error;
    EXPECT_EQ(posix_lock_holder(folder / "lock"), std::nullopt) << error;
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr(folder / "lock' has no locks (flock: ENOLCK)"));
  EXPECT_EQ(said.find("no locks"), said.rfind("no locks")) << said;
}

TEST_F(PosixLockTest, ADeviceThatFailsIsNoFileSystemWithoutLocks) {
  error_of_flock = EIO;
  EXPECT_THROW(posix_lock(folder / "lock", "process 1"), DataLossError);
}

TEST_F(PosixLockTest, ALineThatTheHolderWroteIsShownWithoutItsEnd) {
  const auto lock = posix_lock(folder / "lock", "process 1\n");
  EXPECT_EQ(posix_lock_holder(folder / "lock"), "process 1");
}

TEST_F(PosixLockTest, TellsWhoHoldsItAndTakesItFromNobody) {
  EXPECT_EQ(posix_lock_holder(folder / "lock"), std::nullopt) << "there is no such file";
  auto lock = posix_lock(folder / "lock", "process 1");
  EXPECT_EQ(posix_lock_holder(folder / "lock"), "process 1");
  lock.reset();
  EXPECT_EQ(posix_lock_holder(folder / "lock"), std::nullopt);
  EXPECT_NO_THROW(posix_lock(folder / "lock", "process 2"));
}

}  // namespace
}  // namespace cohort::internal
