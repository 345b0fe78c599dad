// The shared memory of real processes: one of them is killed, stops or leaves while the others
// wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cohort/cluster/tf_config.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/testing_directory_store.h"
#include "cohort/core/testing_time_limit.h"
#include "cohort/testing/multi_process_main.h"
#include "cohort/testing/multi_process_runner.h"

namespace cohort::collective {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;  // one for all processes
using Arguments = std::vector<std::string>;

constexpr int kTasks = 3;
constexpr int64_t kCount = 4 << 20;

// ---- What the tasks run.

std::shared_ptr<Communicator> form(const std::string& directory) {
  GroupMember member{.rank = internal::parse_tf_config(std::getenv("TF_CONFIG")).task_index.value(),
                     .store = std::make_shared<DirectoryStore>(directory),
                     .deadline = Clock::now() + seconds(40)};
  for (int i = 0; i < kTasks; ++i) member.tasks.push_back({"worker", i});
  return make_shared_memory_communicator(member);
}

// "DEADLINE_EXCEEDED 123456789 TEXT": the class, when (since the clock's start), and the text.
std::string report(const Error& error) {
  return internal::str(code_name(error.code()), ' ',
                       std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(), ' ',
                       error.what());
}

// Adds up 16 MB again and again until that fails: what happens to a task meanwhile happens in the
// middle of a call. Arguments: the store's folder, the timeout of a call in ms, the task that does
// something else after 20 calls, and what: "leave", "exit".
std::string add_up(const Arguments& arguments) {
  std::shared_ptr<Communicator> communicator = form(arguments.at(0));
  const milliseconds timeout(std::stoi(arguments.at(1)));
  const bool is_other = std::to_string(communicator->rank()) == arguments.at(2);
  const Buffer buffer{communicator->buffer(kCount * 4).data, kCount, float32};
  auto* values = static_cast<float*>(buffer.data);
  try {
    for (int call = 0;; ++call) {
      if (call == 20 && is_other && arguments.at(3) == "leave") return "left";
      if (call == 20 && is_other && arguments.at(3) == "exit") ::_exit(0);
      values[0] = values[kCount - 1] = 1;
      all_reduce(*communicator, buffer, {.name = "sums", .timeout = timeout});
      if (values[0] != kTasks || values[kCount - 1] != kTasks) return "a wrong sum";
      if (call == 10) std::printf("adding up\n"), std::fflush(stdout);
    }
  } catch (const Error& error) {
    std::string text = report(error);
    std::printf("failed\n"), std::fflush(stdout);
    return text;
  }
}

// ---- The tests.

struct Report {
  std::string error_class;
  milliseconds after{0};  // the fault
  std::string text;
};

class SharedMemoryProcesses : public ::testing::Test {
 protected:
  SharedMemoryProcesses() {
    std::string path = std::filesystem::temp_directory_path() / "shared-memory-XXXXXX";
    directory_ = ::mkdtemp(path.data());
  }
  ~SharedMemoryProcesses() override { std::filesystem::remove_all(directory_); }

  // Starts tasks that add up, and waits until all do.
  std::unique_ptr<testing::MultiProcessRunner> start(milliseconds timeout, int other = -1,
                                                     const std::string& what = "") {
    for (const auto& file : std::filesystem::directory_iterator(directory_)) remove(file.path());
    auto runner = std::make_unique<testing::MultiProcessRunner>(testing::MultiProcessOptions{
        .jobs = {{"worker", kTasks}},
        .function = "add_up",
        .arguments = {directory_, std::to_string(timeout.count()), std::to_string(other), what},
        .deadline = seconds(90)});
    runner->start();
    for (int rank = 0; rank < kTasks; ++rank) {
      runner->wait_for_line({"worker", rank}, "adding up", seconds(60));
    }
    return runner;
  }

  // What the tasks but `except` report of a fault at this time.
  static std::vector<Report> reports(testing::MultiProcessRunner& runner, int except,
                                     Clock::time_point fault) {
    std::vector<Report> all;
    for (const testing::TaskOutcome& outcome : runner.wait_all()) {
      if (outcome.task.index == except) continue;
      std::istringstream words(outcome.value);
      Report report;
      int64_t time = 0;
      words >> report.error_class >> time;
      std::getline(words, report.text);
      report.after = std::chrono::duration_cast<milliseconds>(
          std::chrono::nanoseconds(time) - std::chrono::nanoseconds(fault.time_since_epoch()));
      std::printf("task %d: %s after %lld ms:%s%s\n", outcome.task.index,
                  report.error_class.c_str(), static_cast<long long>(report.after.count()),
                  report.text.c_str(), outcome.error.c_str());
      all.push_back(std::move(report));
    }
    return all;
  }

  std::string directory_;
};

TEST_F(SharedMemoryProcesses, AKilledTaskIsNamedOnAllOthersAtOnce) {
  for (const int victim : {0, 1, 2}) {
    const auto runner = start(seconds(60));
    const auto fault = Clock::now();
    runner->kill({"worker", victim});
    const std::string name = "/job:worker/task:" + std::to_string(victim) + " was lost";
    for (const Report& report : reports(*runner, victim, fault)) {
      EXPECT_EQ(report.error_class, "UNAVAILABLE");
      EXPECT_THAT(report.text, AllOf(HasSubstr(name), HasSubstr("'sums'")));
      EXPECT_LT(report.after, internal::time_limit(milliseconds(500)));
    }
  }
}

TEST_F(SharedMemoryProcesses, AStoppedTaskIsNamedAtTheDeadlineAndLearnsOfItLater) {
  constexpr milliseconds kTimeout(1500);
  const auto runner = start(kTimeout);
  const auto fault = Clock::now();
  runner->pause({"worker", 1});
  // The others end; then the stopped one goes on and finds the same error.
  for (const int rank : {0, 2}) runner->wait_for_line({"worker", rank}, "failed", seconds(30));
  runner->resume({"worker", 1});
  for (const Report& report : reports(*runner, -1, fault)) {
    EXPECT_EQ(report.error_class, "DEADLINE_EXCEEDED");
    EXPECT_THAT(report.text, HasSubstr("waited in 'sums' for 1500 ms, and /job:worker/task:1 did "
                                       "not come"));
    EXPECT_GE(report.after, kTimeout - milliseconds(1000));
  }
}

TEST_F(SharedMemoryProcesses, ATaskThatEndsEarlyIsNamedOnAllOthers) {
  for (const std::string what : {"leave", "exit"}) {
    const auto runner = start(seconds(60), 2, what);
    const auto fault = Clock::now();
    for (const Report& report : reports(*runner, 2, fault)) {
      EXPECT_EQ(report.error_class, "UNAVAILABLE");
      EXPECT_THAT(report.text, HasSubstr(what == "leave" ? "/job:worker/task:2 has left the group"
                                                         : "/job:worker/task:2 was lost"));
    }
  }
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace

int run(int argc, char** argv) {
  return testing::multi_process_main(argc, argv, {{"add_up", add_up}}, run_tests);
}

}  // namespace cohort::collective

int main(int argc, char** argv) { return cohort::collective::run(argc, argv); }
