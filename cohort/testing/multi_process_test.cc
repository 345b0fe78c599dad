// MultiProcessRunner with real processes: this program, started again.
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cohort/testing/multi_process_main.h"
#include "cohort/testing/multi_process_runner.h"

namespace cohort::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using Arguments = std::vector<std::string>;

// ---- What the tasks run.

std::string tf_config() { return std::getenv("TF_CONFIG"); }
bool is_task(const std::string& type, int index) {
  return tf_config().find(R"("task": {"type": ")" + type + R"(", "index": )" +
                          std::to_string(index) + "}") != std::string::npos;
}

std::string describe_task(const Arguments& arguments) {
  std::string text = tf_config();
  for (const std::string& argument : arguments) text += "|" + argument;
  return text;
}

// Worker 1 fails, the others return.
std::string fail_in_worker_1(const Arguments&) {
  if (!is_task("worker", 1)) return "fine";
  std::printf("about to read shard 7\n");
  throw DataLossError("shard 7 is corrupt");
}

[[noreturn]] void hang() {
  for (;;) ::pause();
}

// Says so, then waits for a signal.
std::string hang_in_worker_1(const Arguments&) {
  std::printf("my pid is %d\n", ::getpid());
  if (is_task("worker", 1)) hang();
  return "done";
}

// Hangs at its first start; returns at the second, which it knows by the file that it left.
std::string hang_once(const Arguments& arguments) {
  const std::string mark = arguments.at(0);
  if (std::ifstream(mark).good()) return "second start";
  std::ofstream(mark) << "1";
  std::printf("first start\n");
  hang();
}

std::string print_and_return(const Arguments& arguments) {
  std::printf("%s\n", arguments.at(0).c_str());
  return arguments.at(0);
}

std::string exit_early(const Arguments&) { std::exit(7); }
std::string throw_other(const Arguments&) { throw std::runtime_error("not one of ours"); }
std::string return_much(const Arguments&) { return std::string(3 << 20, 'x'); }
std::string get_variable(const Arguments& arguments) { return std::getenv(arguments[0].c_str()); }
std::string print_100_lines(const Arguments&) {
  for (int i = 0; i < 100; ++i) std::fprintf(stderr, "line <%d>\n", i);
  throw AbortedError("gave up");
}

// A runner of its own, whose task outlives nothing.
std::string start_child_and_hang(const Arguments&) {
  MultiProcessRunner runner({.jobs = {{"child", 1}}, .function = "print_pid_and_hang"});
  runner.start();
  std::printf("%s\n", runner.wait_for_line({"child", 0}, "pid", seconds(30)).c_str());
  hang();
}
std::string print_pid_and_hang(const Arguments&) {
  std::printf("pid %d\n", ::getpid());
  hang();
}

const TaskFunctions& functions() {
  static const TaskFunctions functions = {{"describe_task", describe_task},
                                          {"fail_in_worker_1", fail_in_worker_1},
                                          {"hang_in_worker_1", hang_in_worker_1},
                                          {"hang_once", hang_once},
                                          {"print_and_return", print_and_return},
                                          {"exit_early", exit_early},
                                          {"throw_other", throw_other},
                                          {"return_much", return_much},
                                          {"get_variable", get_variable},
                                          {"print_100_lines", print_100_lines},
                                          {"start_child_and_hang", start_child_and_hang},
                                          {"print_pid_and_hang", print_pid_and_hang}};
  return functions;
}

// ---- The tests.

std::map<TaskId, std::string> run(MultiProcessOptions options) {
  MultiProcessRunner runner(std::move(options));
  runner.start();
  return runner.join();
}

TEST(MultiProcessRunnerTest, EveryTaskFindsItsPlaceAndArguments) {
  MultiProcessRunner runner({.jobs = {{"worker", 2}, {"ps", 1}},
                             .function = "describe_task",
                             .arguments = {"one", "", "two words"}});
  runner.start();
  const auto values = runner.join();
  ASSERT_EQ(values.size(), 3u);
  const std::string cluster = R"({"cluster": {"ps": [")" + runner.address({"ps", 0}) +
                              R"("], "worker": [")" + runner.address({"worker", 0}) + R"(", ")" +
                              runner.address({"worker", 1}) + R"("]}, "task": {"type": )";
  EXPECT_EQ(values.at({"ps", 0}), cluster + R"("ps", "index": 0}}|one||two words)");
  EXPECT_EQ(values.at({"worker", 1}), cluster + R"("worker", "index": 1}}|one||two words)");
}

TEST(MultiProcessRunnerTest, LargeResultsArrive) {
  EXPECT_EQ(run({.jobs = {{"worker", 2}}, .function = "return_much"}).at({"worker", 1}).size(),
            size_t{3} << 20);
}

TEST(MultiProcessRunnerTest, AnExceptionComesWithItsClassTaskAndLog) {
  try {
    run({.jobs = {{"worker", 3}}, .function = "fail_in_worker_1"});
    FAIL() << "no error";
  } catch (const DataLossError& error) {
    EXPECT_EQ(error.task(), "/job:worker/task:1");
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/job:worker/task:1 failed: DATA_LOSS: shard 7 is "
                                              "corrupt"),
                                    HasSubstr("about to read shard 7\n")));
    EXPECT_THAT(error.what(), Not(HasSubstr("task:0")));
  }
}

TEST(MultiProcessRunnerTest, TheLogsEndIsItsLast50Lines) {
  EXPECT_THAT(
      [] {
        run({.jobs = {{"worker", 1}}, .function = "print_100_lines"});
      },
      ThrowsMessage<AbortedError>(
          AllOf(HasSubstr("<99>"), HasSubstr("<60>"), Not(HasSubstr("<49>")))));
}

TEST(MultiProcessRunnerTest, OtherEndsAreUnknownErrors) {
  EXPECT_THAT(
      [] {
        run({.jobs = {{"worker", 1}}, .function = "throw_other"});
      },
      ThrowsMessage<UnknownError>(HasSubstr("not one of ours")));
  EXPECT_THAT(
      [] {
        run({.jobs = {{"worker", 1}}, .function = "exit_early"});
      },
      ThrowsMessage<UnknownError>(HasSubstr("exited with code 7 before")));
}

TEST(MultiProcessRunnerTest, AnUnknownFunctionNamesTheKnown) {
  EXPECT_THAT(
      [] {
        run({.jobs = {{"worker", 1}}, .function = "trian"});
      },
      ThrowsMessage<NotFoundError>(AllOf(HasSubstr("'trian'"), HasSubstr("'describe_task'"))));
}

TEST(MultiProcessRunnerTest, AKilledTaskIsUnavailable) {
  MultiProcessRunner runner({.jobs = {{"worker", 2}}, .function = "hang_in_worker_1"});
  runner.start();
  runner.wait_for_line({"worker", 1}, "my pid", seconds(30));
  runner.kill({"worker", 1}, SIGTERM);
  try {
    runner.join();
    FAIL() << "no error";
  } catch (const UnavailableError& error) {
    EXPECT_EQ(error.task(), "/job:worker/task:1");
    EXPECT_THAT(error.what(), HasSubstr("ended by SIGTERM"));
  }
  const auto outcomes = runner.wait_all();
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[0].value, "done");
  EXPECT_EQ(outcomes[1].code, Code::kUnavailable);
  EXPECT_THROW(runner.kill({"worker", 1}), FailedPreconditionError);
}

TEST(MultiProcessRunnerTest, TheDeadlineNamesAndKillsWhatHangs) {
  // Long enough for the other task to start and end on a busy machine.
  MultiProcessRunner runner(
      {.jobs = {{"worker", 2}}, .function = "hang_in_worker_1", .deadline = milliseconds(3000)});
  runner.start();
  EXPECT_THAT([&] { runner.join(); },
              ThrowsMessage<DeadlineExceededError>(AllOf(
                  HasSubstr("within 3000 ms"), HasSubstr("were killed: /job:worker/task:1\n"))));
  EXPECT_EQ(runner.wait_all().at(1).code, Code::kDeadlineExceeded);
}

TEST(MultiProcessRunnerTest, ARestartedTaskRunsAgain) {
  const std::string mark =
      ::testing::TempDir() + "cohort_restart_mark_" + std::to_string(::getpid());
  MultiProcessRunner runner(
      {.jobs = {{"worker", 1}}, .function = "hang_once", .arguments = {mark}});
  const TaskId task = {"worker", 0};
  runner.start();
  EXPECT_EQ(runner.wait_for_line(task, "^first", seconds(30)), "first start");
  runner.restart(task);
  EXPECT_EQ(runner.join().at(task), "second start");
  // What the first start wrote is not the second's.
  EXPECT_THROW(runner.wait_for_line(task, "first", seconds(30)), UnavailableError);
  EXPECT_THAT(runner.log(task), HasSubstr("first start"));
  std::filesystem::remove(mark);
}

TEST(MultiProcessRunnerTest, WaitingForALineEndsWithTheTaskOrTheTime) {
  MultiProcessRunner runner({.jobs = {{"worker", 2}}, .function = "hang_in_worker_1"});
  runner.start();
  EXPECT_THAT(
      [&] {
        runner.wait_for_line({"worker", 0}, "never", seconds(30));
      },
      ThrowsMessage<UnavailableError>(
          AllOf(HasSubstr("/job:worker/task:0 ended"), HasSubstr("'never'"))));
  EXPECT_THAT(
      [&] {
        runner.wait_for_line({"worker", 1}, "never", milliseconds(50));
      },
      ThrowsMessage<DeadlineExceededError>(HasSubstr("within 50 ms")));
  EXPECT_THROW(runner.wait_for_line({"worker", 1}, "(", seconds(1)), InvalidArgumentError);
}

bool ends_within(pid_t pid, milliseconds limit) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) return errno == ESRCH;
  pollfd ended = {pidfd, POLLIN, 0};
  const int count = ::poll(&ended, 1, static_cast<int>(limit.count()));
  ::close(pidfd);
  return count == 1;
}

TEST(MultiProcessRunnerTest, TasksDieWithTheirParent) {
  MultiProcessRunner runner({.jobs = {{"parent", 1}}, .function = "start_child_and_hang"});
  runner.start();
  const std::string line = runner.wait_for_line({"parent", 0}, "^pid ", seconds(30));
  const pid_t grandchild = std::stoi(line.substr(4));
  ASSERT_EQ(::kill(grandchild, 0), 0);
  runner.kill({"parent", 0});
  EXPECT_EQ(runner.wait_all().at(0).code, Code::kUnavailable);
  EXPECT_TRUE(ends_within(grandchild, seconds(30)));
}

TEST(MultiProcessRunnerTest, TheEnvironmentIsPassedOn) {
  EXPECT_EQ(run({.jobs = {{"worker", 1}},
                 .function = "get_variable",
                 .arguments = {"COHORT_TEST_VARIABLE"},
                 .environment = {{"COHORT_TEST_VARIABLE", "a=b"}}})
                .at({"worker", 0}),
            "a=b");
}

TEST(MultiProcessRunnerTest, KeepsLogsWhereAsked) {
  const std::filesystem::path directory =
      ::testing::TempDir() + "cohort_kept_logs_" + std::to_string(::getpid());
  run({.jobs = {{"worker", 1}},
       .function = "print_and_return",
       .arguments = {"hello"},
       .log_directory = directory});
  std::string line;
  std::getline(std::ifstream(directory / "worker_0.log") >> std::ws, line);
  EXPECT_EQ(line, "hello");
  std::filesystem::remove_all(directory);
}

TEST(MultiProcessRunnerTest, RefusesInvalidOptions) {
  const auto construct = [](MultiProcessOptions options) {
    return [options] { MultiProcessRunner runner(options); };
  };
  EXPECT_THAT(construct({}), ThrowsMessage<InvalidArgumentError>(HasSubstr("names no task")));
  EXPECT_THAT(construct({.jobs = {{"a\"b", 1}}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("'a\"b'")));
  EXPECT_THAT(construct({.jobs = {{"worker", 1}, {"worker", 1}}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("twice")));
  EXPECT_THAT(construct({.jobs = {{"worker", 0}}}),
              ThrowsMessage<InvalidArgumentError>(HasSubstr("has 0")));
  EXPECT_THROW(construct({.jobs = {{"worker", 1}}, .arguments = {std::string(1, '\0')}})(),
               InvalidArgumentError);
}

TEST(MultiProcessRunnerTest, RefusesCallsOutOfOrder) {
  MultiProcessRunner runner({.jobs = {{"worker", 1}}, .function = "describe_task"});
  EXPECT_THROW(runner.join(), FailedPreconditionError);
  EXPECT_THROW(runner.restart({"worker", 0}), FailedPreconditionError);
  EXPECT_THROW(runner.kill({"worker", 0}), FailedPreconditionError);
  EXPECT_THAT(
      [&] {
        runner.log({"worker", 1});
      },
      ThrowsMessage<NotFoundError>(HasSubstr("the tasks are: /job:worker/task:0")));
  runner.start();
  EXPECT_THROW(runner.start(), FailedPreconditionError);
}

}  // namespace
}  // namespace cohort::testing

int main(int argc, char** argv) {
  return cohort::testing::multi_process_main(argc, argv, cohort::testing::functions(),
                                             [](int count, char** arguments) {
                                               ::testing::InitGoogleMock(&count, arguments);
                                               return RUN_ALL_TESTS();
                                             });
}
