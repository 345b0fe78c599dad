#include "cohort/collective/shared_memory/local_socket.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <vector>

#include "cohort/core/error.h"

namespace cohort::collective::shared_memory {
namespace {

using internal::UniqueFd;

struct SocketPair {
  SocketPair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw ResourceExhaustedError("no pair of sockets");
    }
    to = UniqueFd(ends[0]);
    from = UniqueFd(ends[1]);
  }
  UniqueFd to, from;
};

// This thread is an ordinary user's from here on.
void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
}

// This process may open no more than `most` descriptors.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Many tasks on a host, whose descriptors task 0 hands out one after another.
TEST(LocalSocket, DescriptorsWaitUntilOthersHaveArrived) {
  const SocketPair first, second;
  const std::vector<int> many(100, first.to.get());
  const char byte = 'x';
  const auto take = [](const SocketPair& pair) {
    GroupMember member{.deadline = FormingWait::Clock::now() + std::chrono::seconds(20)};
    FormingWait wait(member);
    std::vector<UniqueFd> descriptors;
    char got = 0;
    EXPECT_EQ(receive_all(pair.from.get(), {&got, 1}, descriptors, wait), Received::kAll);
    return descriptors.size();
  };
  std::async(std::launch::async, [&] {
    drop_capabilities();
    const DescriptorLimit limit(50);
    bool is_sent = false, has_waited = false;
    const GroupMember member{.deadline = FormingWait::Clock::now() + std::chrono::seconds(20),
                             .check = [&] {
                               if (is_sent && !has_waited) take(first);
                               has_waited = is_sent;
                             }};
    FormingWait wait(member);
    EXPECT_TRUE(send_all(first.to.get(), {&byte, 1}, many, wait));
    is_sent = true;
    EXPECT_TRUE(send_all(second.to.get(), {&byte, 1}, many, wait));
    EXPECT_TRUE(has_waited);
  }).get();
  EXPECT_EQ(take(second), many.size());
}

}  // namespace
}  // namespace cohort::collective::shared_memory
