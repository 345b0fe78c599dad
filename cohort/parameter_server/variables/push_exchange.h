// The gradient exchange of parameter servers: a worker's gradients, summed over its replicas, go to
// the ps tasks, which update the variables.
#pragma once

#include <memory>
#include <vector>

#include "cohort/core/program/per_task.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/parameter_server/variables/served_variable.h"
#include "cohort/parameter_server/variables/variable_host.h"

namespace cohort::internal {

// The updates are sent after the step, with all else that it changes. Sparse gradients travel as
// rows, of which none comes twice.
// Thread safety: one thread per replica of each task.
class PushExchange final : public GradientExchange {
 public:
  // `host`: a part of the strategy.
  PushExchange(std::vector<UpdateTarget> targets, std::shared_ptr<const StrategyCore> strategy,
               VariableHost& host);

  void begin(Replica& replica, Arrival arrival) override;
  void bring(Replica& replica, size_t target, const Tensor& gradient) override;
  bool has(const Replica& replica, size_t target) const override;
  UpdateResult finish(Replica& replica, const UpdateStep& step) override;

 private:
  // A task's gradients, by replica and target.
  using Gradients = std::vector<std::vector<Tensor>>;

  bool overlaps() const override { return false; }
  Tensor sum(const Gradients& all, size_t target, bool aggregate) const;
  UpdateResult push(const Gradients& all, const UpdateStep& step);
  void push_one(size_t target, const Tensor& gradient, const UpdateStep& step);
  std::shared_ptr<const optim::UpdateRule> shared_rule(const UpdateStep& step, size_t target);
  // Errors: Unimplemented (the rule updates whole variables, and this one lies in shards).
  void check_whole(const optim::UpdateRule& rule, const ServedVariable& variable) const;

  const std::shared_ptr<const StrategyCore> strategy_;
  VariableHost& host_;
  std::vector<std::shared_ptr<ServedVariable>> variables_;           // by target
  std::vector<std::vector<std::shared_ptr<ServedVariable>>> slots_;  // by target
  PerTask<Gradients> gradients_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<const optim::UpdateRule> rule_;
  std::shared_ptr<const optim::UpdateRule> rule_without_decay_;
};

}  // namespace cohort::internal
