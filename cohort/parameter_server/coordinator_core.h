// What a ClusterCoordinator does: it keeps a window of closures on every worker that is alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/parameter_server/closure_queue.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_core.h"

namespace cohort::internal {

// No thread of its own: what goes on is driven by the answers of workers. Thread safety: any thread.
class CoordinatorCore : public std::enable_shared_from_this<CoordinatorCore> {
 public:
  CoordinatorCore(std::shared_ptr<ParameterServerCore> strategy,
                  const distribute::coordinator::ClusterCoordinatorOptions& options);

  ClosureQueue& queue() { return queue_; }
  std::shared_ptr<RemoteResult> schedule(const std::string& function, std::vector<uint64_t> inputs,
                                         std::vector<Structure> arguments);
  // Lets every worker make an input. Returns its number.
  uint64_t make_input(const std::string& function);
  std::vector<distribute::coordinator::WorkerState> workers() const;
  // Says goodbye: nothing more is sent, and answers count no more.
  void stop();

 private:
  struct Worker {
    int index = 0;
    bool is_alive = true;
    int makes_inputs = 0;  // so many times inputs are being made; closures wait for them
    int losses = 0;        // what was asked of the worker before one of them counts no more
    int in_flight = 0;
    int64_t done = 0;
    int64_t retried = 0;
    std::chrono::steady_clock::time_point lost_at = {};
  };
  struct Input {
    uint64_t id;
    std::string function;
  };

  void feed_all();
  void feed(size_t worker);
  void send(size_t worker, const ClosurePtr& closure);
  void answered(size_t worker, const ClosurePtr& closure, rpc::CallResult result);
  void send_inputs(size_t worker, int losses, std::vector<Input> inputs);
  void lose(size_t worker, const std::exception_ptr& error);
  void call_back(size_t worker);
  std::shared_ptr<rpc::Channel> channel(size_t worker) const;

  const std::shared_ptr<ParameterServerCore> strategy_;
  const distribute::coordinator::ClusterCoordinatorOptions options_;
  ClosureQueue queue_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Worker> workers_;
  std::vector<Input> inputs_;
  uint64_t next_input_ = 1;
  bool stopped_ = false;
};

}  // namespace cohort::internal
