// Strategies whose replicas move to other tasks where theirs is lost: the base of those that can
// form their group again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/distribute/core/step_transaction.h"
#include "cohort/distribute/strategies/local_strategy.h"

namespace cohort::internal {

struct ReplicasOfTask;

// How a task and the others form their group again. Used by one thread at a time.
class GroupFormer {
 public:
  virtual ~GroupFormer() = default;

  // The number of calls that all tasks have made under the strategy: steps, and those of
  // StrategyCore::repeatable.
  struct Standing {
    int64_t calls = 0;     // that have ended here; kComing: none, and others may run already
    bool reached = false;  // whether the next has done its work and waits for the others
    bool admits = false;   // whether tasks that have come may join now
  };
  static constexpr int64_t kComing = -1;
  struct Formed {
    std::vector<int64_t> calls;  // that have ended at each task, in the order of ranks
    std::shared_ptr<collective::Communicator> communicator;  // null: this task is alone
    int cores = 0;                                           // see LocalReplicas::Options
  };
  // Waits for the others that are left. COLLECTIVE over them.
  // Errors: what keeps the group from forming.
  virtual Formed form(const Standing& mine) = 0;
  // Whether a call has failed because a task of the group is lost. Waits a moment for the news,
  // which may come later than the end of a connection.
  virtual bool has_lost_a_task() = 0;
  // Whether the group must form again before its next call: it has lost a task, or the one that
  // coordinates the cluster is another one now.
  virtual bool must_form() { return false; }
  // Whether a task has come and waits to join. Only one task of the group gets to know.
  virtual bool somebody_waits() { return false; }
};

// Every task has, between two steps, the values of all variables and the states of all replicas
// (StepTransaction), since the tasks exchange them at the end of each step. When a task is lost,
// the others form the group again, divide its replicas among them, and make the call again that it
// has cut short: a step from the beginning, with the same arguments. Tasks differ by one call at
// most, since a call ends only when all have come to its end: one that is behind gets what the
// others have got of it.
class ElasticStrategy : public LocalStrategy {
 public:
  // former: null for a group that ends where it loses a task.
  // is_coming: the others run already. This task hosts all replicas for itself then, and makes its
  // calls alone, until it joins them.
  ElasticStrategy(Config config, std::shared_ptr<GroupFormer> former, bool is_coming = false);
  ~ElasticStrategy() override;

  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options) override;
  StepTransaction* transaction() const override {
    return former_ == nullptr ? nullptr : &transaction_;
  }
  std::string repeatable(FunctionRef<std::string()> call) override;
  std::optional<int64_t> calls_together() const override {
    return former_ == nullptr ? std::nullopt : std::optional(calls_);
  }
  void admit(FunctionRef<void()> before) override;
  bool join(FunctionRef<void()> restore) override;

 private:
  class StepRecord;
  class HostedGenerators;

  bool is_together() const { return group().spans_tasks(); }
  collective::ReplicaRange own_replicas() const;
  ReplicasOfTask replicas_here() const;
  void run_once(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options);
  void commit(RunFrame& frame);
  StepTransaction::Made own_made() const;
  void write_commit(const RunFrame& frame);
  std::shared_ptr<const StepRecord> read_commit(std::string_view record,
                                                collective::ReplicaRange own);
  std::optional<std::string> form_again(GroupFormer::Standing mine);
  std::optional<std::string> take_up(const GroupFormer::Formed& formed);
  std::string states_of(collective::ReplicaRange range) const;
  void read_states(std::string_view states, collective::ReplicaRange own);
  void tell_own_states();
  void tell_all_states();
  void form_after_call();

  const std::shared_ptr<GroupFormer> former_;
  mutable StepTransaction transaction_;
  const std::unique_ptr<HostedGenerators> generators_;
  bool have_told_states_ = false;  // before the first step
  const bool has_come_;            // to a group that ran already
  // Groups of before, which calls under way still refer to.
  std::vector<std::unique_ptr<LocalReplicas>> retired_;
  int64_t calls_;           // that have ended
  bool reached_ = false;    // whether the work of the step under way is done
  bool in_call_ = false;    // of repeatable
  bool must_form_ = false;  // whether a task has said so at the end of the last step
  std::string answer_;      // what the last call gave to all tasks
  // What this task brings to the end of a step, and what it brought to the one before: others may
  // still read that.
  std::string messages_[2];
};

}  // namespace cohort::internal
