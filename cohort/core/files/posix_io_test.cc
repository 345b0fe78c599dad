#include "cohort/core/files/posix_io.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/host/posix_error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/testing_file_size_limit.h"

namespace cohort::internal {
namespace {

std::atomic<int> signals_seen = 0;

// A signal whose handler does nothing but break off system calls.
class InterruptingSignal {
 public:
  InterruptingSignal() {
    struct sigaction action {};
    action.sa_handler = [](int) { ++signals_seen; };
    ::sigaction(SIGUSR1, &action, &before_);
  }
  ~InterruptingSignal() { ::sigaction(SIGUSR1, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

// Waits a little for the handler: a sanitizer may hold the signal back for longer.
void interrupt(std::thread& thread) {
  const int before = signals_seen;
  ::pthread_kill(thread.native_handle(), SIGUSR1);
  for (int i = 0; i < 1000 && signals_seen == before; ++i) std::this_thread::yield();
}

bool is_full(int pipe) {
  pollfd state{.fd = pipe, .events = POLLOUT, .revents = 0};
  return ::poll(&state, 1, 0) == 0;
}

TEST(WriteAllTest, ContinuesShortWritesAndRepeatsBrokenOffOnes) {
  const InterruptingSignal signal;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd from(ends[0]), to(ends[1]);
  std::string bytes(size_t{1} << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 >> 3);

  Transfer done;
  std::thread writer([&] { done = write_all(to.get(), bytes); });
  while (!is_full(to.get())) std::this_thread::yield();
  std::string got(bytes.size(), '\0');
  for (size_t at = 0; at < got.size();) {
    interrupt(writer);  // a write that has stored something: a short one
    interrupt(writer);  // a write that still waits for room: EINTR
    const size_t most = std::min<size_t>(4096, got.size() - at);
    const ssize_t count = ::read(from.get(), got.data() + at, most);
    ASSERT_GT(count, 0);
    at += static_cast<size_t>(count);
  }
  writer.join();
  EXPECT_GT(signals_seen, 0);
  EXPECT_EQ(done.error_number, 0);
  EXPECT_EQ(done.bytes, bytes.size());
  EXPECT_TRUE(got == bytes);
}

TEST(WriteAllTest, ReportsAFullDevice) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full.valid());
  const Transfer done = write_all(full.get(), "data");
  EXPECT_EQ(done.bytes, 0u);
  EXPECT_EQ(done.error_number, ENOSPC);
}

class FileSizeLimitTest : public testing::Test {
 protected:
  FileSizeLimitTest() {
    std::string path = testing::TempDir() + "posix_io_test.XXXXXX";
    file_ = UniqueFd(::mkstemp(path.data()));
    ::unlink(path.c_str());
  }

  UniqueFd file_;
  const FileSizeLimit limit_{1000};
};

// Without the library's care the kernel would end the process here.
TEST_F(FileSizeLimitTest, AWriteBeyondItIsAnError) {
  const Transfer done = write_all(file_.get(), std::string(3000, 'x'));
  EXPECT_EQ(done.bytes, 1000u);
  EXPECT_EQ(done.error_number, EFBIG);
}

TEST_F(FileSizeLimitTest, SoAreReservingAndResizing) {
  EXPECT_EQ(reserve_space(file_.get(), 3000), EFBIG);
  EXPECT_EQ(set_size(file_.get(), 3000), EFBIG);
  EXPECT_EQ(set_size(file_.get(), 1000), 0);
}

TEST_F(FileSizeLimitTest, TheCallersSignalMaskStaysAsItWas) {
  write_all(file_.get(), std::string(3000, 'x'));
  sigset_t mask, pending;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  ::sigpending(&pending);
  EXPECT_EQ(::sigismember(&mask, SIGXFSZ), 0);
  EXPECT_EQ(::sigismember(&pending, SIGXFSZ), 0);
}

TEST(ReadAllTest, EndsWhereTheFileEnds) {
  std::string path = testing::TempDir() + "posix_io_test.XXXXXX";
  const UniqueFd file(::mkstemp(path.data()));
  ::unlink(path.c_str());
  ASSERT_EQ(write_all(file.get(), "12345").error_number, 0);
  std::string got(4, ' ');
  Transfer done = read_all(file.get(), 1, got.data(), got.size());
  EXPECT_EQ(done.bytes, 4u);
  EXPECT_EQ(got, "2345");
  done = read_all(file.get(), 3, got.data(), got.size());
  EXPECT_EQ(done.bytes, 2u);
  EXPECT_EQ(done.error_number, 0);
}

TEST(ReadAllTest, ReportsErrors) {
  char byte = 0;
  EXPECT_EQ(read_all(-1, 0, &byte, 1).error_number, EBADF);
}

TEST(ThrowErrnoTest, TheClassSaysWhatToDoNextAndTheTextWhatHappened) {
  const auto text = [](int error_number) -> std::string {
    try {
      throw_errno(error_number, "writing to 'a'");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), errno_code(error_number));
      return error.what();
    }
  };
  EXPECT_EQ(text(ENOSPC),
            "writing to 'a' failed: No space left on device (ENOSPC); free some space on that file "
            "system");
  EXPECT_EQ(text(EBADF), "writing to 'a' failed: Bad file descriptor (EBADF)");
  EXPECT_EQ(text(99999), "writing to 'a' failed: unknown error (99999)");
}

TEST(ThrowErrnoTest, EachCodeHasItsClass) {
  EXPECT_THROW(throw_errno(ENOENT, ""), NotFoundError);
  EXPECT_THROW(throw_errno(ENOTDIR, ""), NotFoundError);
  EXPECT_THROW(throw_errno(EEXIST, ""), AlreadyExistsError);
  EXPECT_THROW(throw_errno(EACCES, ""), PermissionDeniedError);
  EXPECT_THROW(throw_errno(EPERM, ""), PermissionDeniedError);
  EXPECT_THROW(throw_errno(ELOOP, ""), PermissionDeniedError);
  for (int error_number : {ENOSPC, EDQUOT, EFBIG, ENOMEM, EMFILE, ENFILE}) {
    EXPECT_THROW(throw_errno(error_number, ""), ResourceExhaustedError) << error_number;
  }
  for (int error_number : {ENAMETOOLONG, EISDIR, EINVAL}) {
    EXPECT_THROW(throw_errno(error_number, ""), InvalidArgumentError) << error_number;
  }
  EXPECT_THROW(throw_errno(EBUSY, ""), FailedPreconditionError);
  for (int error_number : {ENOSYS, EOPNOTSUPP, 524}) {
    EXPECT_THROW(throw_errno(error_number, ""), UnimplementedError) << error_number;
  }
  EXPECT_THROW(throw_errno(EIO, ""), DataLossError);
  EXPECT_THROW(throw_errno(EROFS, ""), PermissionDeniedError);
}

}  // namespace
}  // namespace cohort::internal
