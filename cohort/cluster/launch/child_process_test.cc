#include "cohort/cluster/launch/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "cohort/core/error.h"
#include "cohort/core/threads/thread_sanitizer.h"

namespace cohort::internal {
namespace {

using testing::HasSubstr;
using testing::Optional;

// Runs it to its end. What it wrote to stdout.
std::string output_of(SpawnOptions options, ExitStatus* status = nullptr) {
  std::array<int, 2> ends;
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  options.stdout_fd = in.get();
  ChildProcess child(options);
  in.reset();
  std::string text;
  std::array<char, 4096> block;
  for (ssize_t count; (count = ::read(out.get(), block.data(), block.size())) > 0;) {
    text.append(block.data(), static_cast<size_t>(count));
  }
  pollfd ended = {child.pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1);
  const auto end = child.poll();
  EXPECT_TRUE(end);
  if (status && end) *status = *end;
  return text;
}

SpawnOptions shell(const std::string& script) {
  return {.program = "/bin/sh", .arguments = {"-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

TEST(ChildProcessTest, HasItsArgumentsEnvironmentAndExitCode) {
  SpawnOptions options = shell("echo \"$GREETING $1\"; exit 7");
  options.arguments.insert(options.arguments.end(), {"sh", "two words"});
  set_variable(options.environment, "GREETING", "hello");
  ExitStatus status;
  EXPECT_EQ(output_of(options, &status), "hello two words\n");
  EXPECT_THAT(status.exit_code, Optional(7));
  EXPECT_EQ(status.shell_code(), 7);
}

TEST(ChildProcessTest, DescriptorsArriveThoughTheyLieOnEachOthersNumbers) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  SpawnOptions options = shell("echo err >&2; echo extra >&3; cat");
  options.stderr_fd = in.get();
  options.extra_fd = in.get();
  EXPECT_EQ(output_of(options), "");
  in.reset();
  std::array<char, 64> block;
  const ssize_t count = ::read(out.get(), block.data(), block.size());
  EXPECT_EQ(std::string(block.data(), static_cast<size_t>(count)), "err\nextra\n");
}

TEST(ChildProcessTest, SignalsHaveTheirDefaultsAndEndIt) {
  ::signal(SIGUSR1, SIG_IGN);
  SpawnOptions options = shell("kill -USR1 $$; echo still there");
  ExitStatus status;
  EXPECT_EQ(output_of(options, &status), "");
  ::signal(SIGUSR1, SIG_DFL);
  EXPECT_THAT(status.signal, Optional(SIGUSR1));
  EXPECT_EQ(status.shell_code(), 128 + SIGUSR1);
  EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
}

TEST(ChildProcessTest, RunsOnTheCoresThatItIsGiven) {
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(mask), &mask), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(static_cast<size_t>(last), &mask)) --last;
  SpawnOptions options = shell("taskset -pc $$");
  options.cores = {last};
  EXPECT_THAT(output_of(options), HasSubstr("list: " + std::to_string(last) + "\n"));
#ifndef COHORT_THREAD_SANITIZER  // whose vfork is a fork: what the child finds wrong stays with it
  options.cores = {CPU_SETSIZE - 1};
  if (last != CPU_SETSIZE - 1) {
    EXPECT_THROW(ChildProcess{options}, InvalidArgumentError);
  }
#endif
  options.cores = {-1};
  EXPECT_THROW(ChildProcess{options}, InvalidArgumentError);
}

#ifndef COHORT_THREAD_SANITIZER  // as above: nobody waits until the child has begun
TEST(ChildProcessTest, OwnGroup) {
  SpawnOptions options = shell("exec sleep 60");
  options.own_group = true;
  ChildProcess child(options);
  EXPECT_EQ(::getpgid(child.pid()), child.pid());
  EXPECT_FALSE(child.poll());
  EXPECT_THAT(child.kill_and_reap().signal, Optional(SIGKILL));
  EXPECT_FALSE(child.send_signal(SIGTERM));
}
#endif

TEST(ChildProcessTest, ASignalReachesTheWholeGroup) {
  SpawnOptions options = shell("sleep 60 & echo started; wait");
  options.own_group = true;
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  options.stdout_fd = in.get();
  ChildProcess child(options);
  in.reset();
  std::array<char, 64> block;
  ASSERT_GT(::read(out.get(), block.data(), block.size()), 0);
  EXPECT_TRUE(child.send_signal(SIGTERM));
  // The pipe ends when its last writer, the sleep, has.
  pollfd ended = {out.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1);
  EXPECT_EQ(::read(out.get(), block.data(), block.size()), 0);
}

TEST(ChildProcessTest, ExitCodesAreKeptWhereTheParentIgnoresItsChildren) {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignore, nullptr);
  ExitStatus status;
  output_of(shell("exit 7"), &status);
  EXPECT_THAT(status.exit_code, Optional(7));
}

TEST(ChildProcessTest, AnExitCodeThatIsLostIsNoSuccess) {
  ChildProcess child(shell("exit 0"));
  ASSERT_EQ(::waitpid(child.pid(), nullptr, 0), child.pid());
  const auto status = child.poll();
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->ok());
  EXPECT_EQ(status->shell_code(), 1);
  EXPECT_THAT(describe(*status), HasSubstr("lost"));
  EXPECT_FALSE(child.send_signal(SIGTERM));
}

#ifndef COHORT_THREAD_SANITIZER  // as above
TEST(ChildProcessTest, ProgramsThatCannotBeStartedSayWhy) {
  EXPECT_THROW(ChildProcess({.program = "/no/such/program"}), NotFoundError);
  EXPECT_THROW(ChildProcess({.program = "/etc/passwd"}), PermissionDeniedError);
  EXPECT_THROW(
      ChildProcess({.program = "/bin/true", .arguments = {std::string(std::size_t{3} << 20, 'x')}}),
      InvalidArgumentError);
}
#endif

TEST(ChildProcessTest, FindsProgramsAsAShellDoes) {
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_THAT(find_program("sh"), testing::EndsWith("/sh"));
  EXPECT_THROW(find_program("no_such_program_anywhere"), NotFoundError);
  EXPECT_THROW(find_program("./no_such_program"), NotFoundError);
  EXPECT_THROW(find_program("/etc"), PermissionDeniedError);
  EXPECT_THROW(find_program(""), InvalidArgumentError);
}

TEST(ChildProcessTest, SetsVariablesOnce) {
  std::vector<std::string> environment = {"A=1", "AB=2", "A=3"};
  set_variable(environment, "A", "x=y");
  EXPECT_THAT(environment, testing::ElementsAre("AB=2", "A=x=y"));
}

}  // namespace
}  // namespace cohort::internal
