// Runs closures for the coordinator, one after another, in the order in which they come. A closure
// is answered when the ps tasks have what it changed; meanwhile the next one begins.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/core/program/task_id.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/parameter_server/closures/answers_under_way.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/closures/worker_generator.h"
#include "cohort/parameter_server/closures/worker_side.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/store/figure_reporter.h"

namespace cohort::distribute {
class DistributedIterator;
}

namespace cohort::internal {

// Methods: "run", "make_input", "drop_input", "read_value", of an input that is a value, "skip",
// for the place of a closure that does not come, and "hello", which answers when the worker is
// there. Only the cluster's coordinator may call them; closures and inputs of others than the one
// that has this worker, and of earlier sessions, are refused.
class ClosureService final : public rpc::Service {
 public:
  ClosureService(const train::ClusterSpec& cluster, TaskId self,
                 std::shared_ptr<CoordinatorFence> fence);
  ~ClosureService() override;

  // Runs closures of this strategy, too. It may end while calls come; it is asked whether it lives.
  void add(const std::weak_ptr<WorkerSide>& side);
  // The coordinator that gave sessions below this one ends: inputs that functions of its program
  // have made go, once what the worker does at the moment has ended. Does not wait.
  void drop_inputs_below(SessionId session);
  // Waits until what the worker does at the moment has ended; returns whether that was before the
  // deadline.
  bool wait_until_idle(std::chrono::steady_clock::time_point deadline);

  std::string_view name() const override { return "closures"; }
  std::span<const rpc::MethodSpec> methods() const override;
  void handle(size_t method, std::unique_ptr<rpc::Call> call) override;

 private:
  // An input, or why there is none.
  struct Input {
    std::shared_ptr<void>
        in_use;  // of the function that made the iterator, whose threads may call it
    std::unique_ptr<distribute::DistributedIterator> iterator;
    Structure value;
    std::exception_ptr error;
  };

  // The strategy whose coordinator has this generation; in a process of its own a worker does not
  // know generations, and has one strategy. Errors: Cancelled (it has ended).
  std::shared_ptr<WorkerSide> side_of(int64_t generation) const;
  using CallPtr = std::shared_ptr<rpc::Call>;
  // A closure that has come, or takes the place of one.
  struct Arrival {
    CallPtr call;
    RunClosure closure;
    std::chrono::steady_clock::time_point at;
    bool is_skipped = false;
  };
  void answer(size_t method, const CallPtr& call, std::chrono::steady_clock::time_point arrived);
  // Runs it, and those that have waited for it; or lets it wait for those before.
  void take_in_order(Arrival arrival);
  void run_those_in_turn();
  void run_or_fail(const Arrival& arrival);
  void run(const CallPtr& call, const RunClosure& closure,
           std::chrono::steady_clock::time_point arrived);
  // Answers with the result or the error when the closure's last push has been acknowledged.
  void answer_after_push(const WorkerSide& side, const CallPtr& call, rpc::Message result,
                         const std::exception_ptr& error);
  rpc::Message result_of(WorkerSide& side, const RunClosure& closure) const;
  static void check_defined(const Structure& result, const std::string& function);
  const Input& input(uint64_t id) const;
  std::vector<distribute::DistributedIterator*> inputs_of(const RunClosure& closure) const;
  // The closure's arguments, with the worker's own values.
  Structure arguments_of(const RunClosure& closure) const;
  void fail(rpc::Call& call, const std::exception_ptr& thrown) const;
  void make_input(const MakeInput& request);
  // Errors: those of the function.
  void fill(WorkerSide& side, const MakeInput& request, Input& input) const;
  void drop_input(const MakeInput& request);
  void drop_inputs();
  void report(std::chrono::nanoseconds took);

  const TaskId self_;
  const std::shared_ptr<CoordinatorFence> fence_;
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<WorkerSide>> sides_;  // guarded by mutex_
  std::map<uint64_t, Input> inputs_;              // of the pool's one thread, as is what follows
  SessionId inputs_session_ = 0;                  // in which they were made
  WorkerGenerator generator_;                     // of functions, outside of their steps
  SessionId session_ = 0;                         // the latest that closures came of
  uint64_t next_ = 0;                             // in its order
  std::map<uint64_t, Arrival> arrived_;           // of it, too early
  int64_t closures_ = 0;
  std::chrono::nanoseconds busy_{0};
  int64_t reported_closures_ = 0;
  std::chrono::steady_clock::time_point reported_at_ = std::chrono::steady_clock::now();
  FigureReporter figures_;
  std::atomic<int> waiting_{0};  // closures that have come and have not begun
  AnswersUnderWay answers_;      // that wait for the acknowledgement of their closures' last push
  ThreadPool pool_;
};

}  // namespace cohort::internal
