// The implementation of MultiWorkerMirroredStrategy: a strategy whose communicator connects the
// workers of a cluster. It ends when one of them is lost, unless workers host replicas.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/collective/communication_options.h"
#include "cohort/core/program/failure_frame.h"
#include "cohort/core/program/process.h"
#include "cohort/core/program/task_id.h"
#include "cohort/distribute/strategies/cluster_former.h"
#include "cohort/distribute/strategies/elastic_strategy.h"
#include "cohort/distribute/strategies/group_connection.h"

namespace cohort::internal {

// The place of this task among the workers of a cluster.
struct WorkerPlace {
  std::vector<TaskId> workers;  // chief first; the order of ranks
  TaskId self;                  // of a program that is alone: worker 0
  int rank = 0;
  bool is_cluster = false;  // whether a resolver names the task; else the program is alone
};
// Errors: InvalidArgument, one line (a cluster that cannot run; no task type or id; a ps).
WorkerPlace worker_place(const distribute::cluster_resolver::ClusterResolver& resolver);

class MultiWorkerStrategy final : public ElasticStrategy {
 public:
  struct Options {
    std::shared_ptr<const distribute::cluster_resolver::ClusterResolver> resolver;
    WorkerPlace place;
    std::vector<std::string> devices;
    bool shared_storage = true;
    // Intra-op threads of each replica that workers host. 0: a worker's replicas are its devices.
    int threads_per_replica = 0;
    std::optional<GroupConnection> connection = {};  // nothing: there are no other workers
    // In place of a connection, where workers host replicas: it has formed the group.
    std::shared_ptr<ClusterFormer> former = nullptr;
    bool is_coming = false;  // see ElasticStrategy
    distribute::experimental::CommunicationOptions communication_options = {};
    std::chrono::milliseconds close_timeout{0};
  };
  // COLLECTIVE over the workers. Errors: those of a Communicator's calls.
  explicit MultiWorkerStrategy(Options options);
  // Meets the other workers once more, so that none looks lost that has only finished earlier. One
  // that is left by an exception ends the work of the others instead, by that error if the
  // program's FailureFrame catches it; and so does one whose last call has failed, by that call's.
  ~MultiWorkerStrategy() override;

  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options) override;
  std::shared_ptr<const distribute::cluster_resolver::ClusterResolver> cluster_resolver()
      const override {
    return options_.resolver;
  }
  bool is_between_graph() const override { return true; }
  void note_failure(const std::exception_ptr& error) noexcept override { failure_ = error; }

  const WorkerPlace& place() const { return options_.place; }
  int num_workers() const;
  // nullptr: there are no other workers.
  distribute::Server* server() const;

 private:
  void close() noexcept;

  const Options options_;
  const Task& maker_;
  const HomeProcess home_;
  const int exceptions_;                            // that were under way when it was made
  const std::shared_ptr<FailureListener> pass_on_;  // null: there are no other workers
  std::exception_ptr failure_;                      // since the latest step
};

}  // namespace cohort::internal
