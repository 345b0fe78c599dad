// Tests of jobs that run in many processes: the program starts itself again once a task.
//
//   std::string train(const std::vector<std::string>& arguments);   // finds its task in TF_CONFIG
//   // main calls multi_process_main(argc, argv, {{"train", train}}, run_tests)
//
//   TEST(JobTest, SurvivesTheLossOfAWorker) {
//     testing::MultiProcessRunner runner({.jobs = {{"worker", 2}, {"ps", 1}}, .function =
//     "train"}); runner.start(); runner.wait_for_line({"worker", 1}, "step 3",
//     std::chrono::seconds(5)); runner.kill({"worker", 1}); runner.restart({"worker", 1});
//     EXPECT_EQ(runner.join().at({"worker", 0}), "trained");
//   }
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/program/task_id.h"
#include "cohort/testing/virtual_network.h"

namespace cohort::testing {

using cohort::TaskId;
using cohort::to_string;

struct JobSize {
  std::string name;  // letters, digits, '_' and '-'
  int num_tasks = 0;
};

struct MultiProcessOptions {
  std::vector<JobSize> jobs;
  std::string function = "";                // a name given to multi_process_main
  std::vector<std::string> arguments = {};  // the function's, the same for every task
  // The time of the run, from start() on. When it has passed, every task gets SIGKILL.
  std::chrono::milliseconds deadline = std::chrono::seconds(60);
  std::map<std::string, std::string> environment = {};  // beside this process's own and TF_CONFIG
  // Gives each task a host of its own, with an address of its own, in a VirtualNetwork; needs root.
  bool own_hosts = false;
  // The folder for the tasks' logs, which are kept afterwards. Empty: a temporary folder that is
  // removed.
  std::string log_directory = "";
};

// How a task ended.
struct TaskOutcome {
  TaskId task = {};
  Code code = Code::kOk;  // kUnavailable: ended by a signal; kUnknown: exited with nothing reported
  std::string value = "";  // what its function returned, if kOk
  std::string error = "";  // what went wrong, if not
};

// One run of a cluster's tasks on this machine. Each gets TF_CONFIG and an address: a free port of
// 127.0.0.1, which the runner holds while it lives (FreePorts says what that asks of servers), or
// one of its own host.
//
// The tasks die with the thread that started them: let that thread live until join() returns.
// Thread safety: none; one thread drives it.
class MultiProcessRunner {
 public:
  // Starts nothing yet. Errors: InvalidArgument (no tasks; a bad job name; a job twice; a function
  // name or an argument with a zero byte), ResourceExhausted (no port, no temporary folder).
  explicit MultiProcessRunner(MultiProcessOptions options);
  // Kills the tasks that still run.
  ~MultiProcessRunner();
  MultiProcessRunner(const MultiProcessRunner&) = delete;
  MultiProcessRunner& operator=(const MultiProcessRunner&) = delete;

  std::vector<TaskId> tasks() const;
  // "127.0.0.1:41234". Errors: NotFound (no such task; so for all calls that name a task).
  std::string address(const TaskId& task) const;

  // Starts every task. Errors: FailedPrecondition (called twice), ResourceExhausted.
  void start();

  // Waits until every task has ended, and returns what their functions returned.
  // Errors: the class that a task's function threw; Unavailable (a signal ended a task);
  // Unknown (a task exited without a result, or failed after it); DeadlineExceeded (names the tasks
  // that had not ended; all are killed). Of several failures the class and Error::task() are the
  // first's; the text holds all of them, each with the last 50 lines of its log.
  std::map<TaskId, std::string> join();
  // The same, but a failed task is an outcome. Errors: DeadlineExceeded.
  std::vector<TaskOutcome> wait_all();

  // Sends a signal. Errors: FailedPrecondition (the task does not run).
  void kill(const TaskId& task, int signal = SIGKILL);
  // Ends the task if it runs, and starts it afresh at its address; its earlier outcome is
  // forgotten. Errors: FailedPrecondition (before start()), ResourceExhausted.
  void restart(const TaskId& task);
  // Stops the task where it is, as a machine that hangs: its connections stay. And goes on.
  // Errors: FailedPrecondition (the task does not run).
  void pause(const TaskId& task);
  void resume(const TaskId& task);

  // These four act on the tasks' hosts: they cut every link between the two groups, cut one way
  // only, end all cuts, and limit what a task may send. See VirtualNetwork.
  // Errors: FailedPrecondition (without MultiProcessOptions::own_hosts).
  void partition(const std::vector<TaskId>& a, const std::vector<TaskId>& b, Partition kind);
  void cut_one_way(const TaskId& from, const TaskId& to);
  void heal();
  void limit_rate(const TaskId& task, int64_t bits_per_second);

  // The first line of the task's output since its (re)start of which some part matches the regular
  // expression (ECMAScript). Waits at most `timeout` and not beyond the run's deadline.
  // Errors: InvalidArgument (no regular expression), DeadlineExceeded, Unavailable (the task ended
  // before), FailedPrecondition (before start()).
  std::string wait_for_line(const TaskId& task, const std::string& regex,
                            std::chrono::milliseconds timeout);
  // What the task has written to stdout and stderr.
  std::string log(const TaskId& task) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::testing
