// What a strategy does where its program leads the cluster: it has one coordinator at a time, whose
// numbers go on from those of the one before, and says what the loss of a ps task means.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "cohort/parameter_server/closures/worker_side.h"
#include "cohort/parameter_server/cluster/ps_cluster.h"
#include "cohort/parameter_server/coordinator/coordinator_numbers.h"
#include "cohort/parameter_server/coordinator/coordinator_options.h"

namespace cohort::internal {

class ClosureQueue;
class CoordinatorCore;

// A part of the strategy. Thread safety: any thread.
class LeaderSide {
 public:
  using Options = distribute::coordinator::ClusterCoordinatorOptions;

  // `workers`: those of this process.
  LeaderSide(PsCluster& cluster, WorkerSide& workers);

  // Makes a coordinator, which keeps the strategy. There is one at a time: it is at work from its
  // start to its end. Errors: FailedPrecondition (there is one); those of PsCluster::lead.
  static std::shared_ptr<CoordinatorCore> make_coordinator(
      const std::shared_ptr<LeaderSide>& leader, const Options& options);
  // The program's coordinator, which has been started; makes it if there is none. The last of the
  // pointers stops it. Errors: those of make_coordinator.
  static std::shared_ptr<CoordinatorCore> share_coordinator(
      const std::shared_ptr<LeaderSide>& leader, const Options& options);
  // The one that is at work, if one is.
  std::shared_ptr<CoordinatorCore> coordinator() const;
  // Whether there has been a coordinator.
  bool has_begun() const;
  // Whether the end of the last shared coordinator came by an exception.
  bool was_left_by_exception() const { return left_by_exception_; }

  // What the coordinator at work has scheduled has lower numbers; 0: there is none. May be called
  // with any lock held.
  uint64_t next_closure() const;
  // All of it that has lower numbers has ended. A coordinator that has ended has nothing under way:
  // ps tasks refuse what its workers still run.
  uint64_t oldest_unfinished_closure() const;

  // The latest checkpoint of variables of this strategy that was saved or restored; empty: none.
  std::string last_checkpoint() const;
  void set_last_checkpoint(const std::string& path);

  // What the error of a call to a ps task is thrown as: a task that cannot be reached may turn out
  // to be lost, about which more is known.
  std::exception_ptr explained(const std::exception_ptr& error) const;

 private:
  // The first numbers of a coordinator. Those of closures are above all that earlier ones of this
  // cluster have used, in this program or before it was started again: ps tasks apply what a number
  // brings once. Errors: those of make_coordinator.
  CoordinatorNumbers begin_closures();
  void end_closures(const CoordinatorNumbers& next);
  void set_coordinator(const std::shared_ptr<CoordinatorCore>& coordinator);
  std::exception_ptr explained_loss(const std::exception_ptr& error) const;

  PsCluster& cluster_;
  WorkerSide& workers_;
  const int exceptions_;  // that were under way when it was made
  std::atomic<bool> left_by_exception_{false};

  std::mutex shared_mutex_;                // held while the program's coordinator is made
  std::weak_ptr<CoordinatorCore> shared_;  // guarded by shared_mutex_

  mutable std::mutex mutex_;  // guards what follows
  bool has_coordinator_ = false;
  std::weak_ptr<CoordinatorCore> coordinator_;
  std::string last_checkpoint_;
  CoordinatorNumbers next_{.closure = 0};  // 0: there has been no coordinator

  // No other mutex is taken under last_mutex_.
  mutable std::mutex last_mutex_;
  // The closures of the coordinator that is at work. Changed with mutex_ and last_mutex_ held, read
  // with either.
  const ClosureQueue* closures_ = nullptr;
};

}  // namespace cohort::internal
