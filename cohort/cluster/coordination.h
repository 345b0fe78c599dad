// What the tasks of a cluster agree on: who is there, who is lost, when all have come to a point,
// and small values that one sets and others read.
//
//   tf::distribute::Server server(resolver);
//   tf::distribute::Coordination& cluster = server.coordination();
//   cluster.wait_for_start();        // all tasks are there, or an error names who is not
//   cluster.set("data/seed", "42");
//   cluster.barrier("initialised");  // throws Unavailable if a task is lost meanwhile
//   cluster.get("data/seed", std::chrono::seconds(5));
//
// docs/membership.md says what a person sees for each fault.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {
class ServerMembership;
}

namespace cohort::distribute {

enum class TaskStatus {
  kAwaited,  // it has not come yet
  kAlive,
  kLost,
  kLeft,  // in good order
};
// "awaited" and so on.
COHORT_API std::string_view task_status_name(TaskStatus status);

struct ClusterTask {
  TaskId task = {};
  std::string address = "";
  TaskStatus status = TaskStatus::kAwaited;
  uint64_t incarnation = 0;  // another number for each start of the task's process
};

// The tasks of the cluster and their states at one moment.
struct ClusterView {
  int64_t generation = 0;  // 0: not started; higher with each task that is lost, leaves or comes
  std::vector<ClusterTask> tasks = {};
};

struct BarrierOptions {
  std::vector<TaskId> tasks = {};  // who takes part; none: all that are alive
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
};

struct SetOptions {
  bool session = false;  // the key goes when this task's process does
};

// One for each server. Errors of every call that waits: DeadlineExceeded (names whom or what it
// waited for), and what has ended this task's membership: Unavailable (the coordinating task is
// lost), Aborted (this task was taken for lost, or was replaced), FailedPrecondition (another
// program or cluster spec).
// Thread safety: any thread.
class COHORT_API Coordination {
 public:
  explicit Coordination(std::shared_ptr<internal::ServerMembership> membership);
  Coordination(const Coordination&) = delete;
  Coordination& operator=(const Coordination&) = delete;

  // Waits until every task of the cluster has come, at most ServerOptions::start_timeout.
  ClusterView wait_for_start();
  ClusterView view() const;

  // Waits until all tasks have called it with this name. Errors: Unavailable (a task that takes
  // part is lost or has left), Aborted (the cluster has changed meanwhile), InvalidArgument (two
  // tasks name different participants).
  void barrier(const std::string& name, const BarrierOptions& options = {});

  // Keys have up to 1 KiB, values up to 1 MiB, a task up to 10,000 keys. Errors: InvalidArgument
  // (the key), ResourceExhausted (those limits).
  void set(const std::string& key, const std::string& value, const SetOptions& options = {});
  // Waits for the key.
  std::string get(const std::string& key, std::chrono::milliseconds timeout);
  // Nothing if there is no such key.
  std::optional<std::string> find(const std::string& key);
  // Adds to a key that holds a number (none: 0), and returns the sum. Errors: FailedPrecondition
  // (it holds something else), OutOfRange.
  int64_t add(const std::string& key, int64_t delta);
  // Sets the key to `value` if it holds `expected` (nullopt: if there is no such key). Returns
  // whether it did.
  bool compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                       const std::string& value, const SetOptions& options = {});
  // Whether there was such a key.
  bool remove(const std::string& key);
  // Keys that begin with `prefix`, in order.
  std::vector<std::string> list(const std::string& prefix);

  // A number that `cohort cluster status` shows for this task: steps per second, say.
  // Errors: InvalidArgument (a name that is empty, not UTF-8 or longer than 256 bytes),
  // ResourceExhausted (a task may have 128 of them).
  void set_figure(const std::string& name, double value);
  // Removes a number that set_figure has set. Does nothing if there is no such number.
  void drop_figure(const std::string& name);
  // Tells the other tasks of an error of this one: they get it in on_error.
  void report(std::exception_ptr error);
  // Calls `handler` with an Unavailable for each task that is lost, with the errors that other
  // tasks report, and with the error that ends this task's membership; also with those that came
  // before. It is called on any thread, one call at a time, and must not block.
  void on_error(std::function<void(std::exception_ptr)> handler);

 private:
  const std::shared_ptr<internal::ServerMembership> membership_;
};

}  // namespace cohort::distribute
