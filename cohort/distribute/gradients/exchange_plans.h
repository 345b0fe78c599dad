// Finds the exchange for a list of variables: created at the first step, found again at later ones.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/distribute/gradients/gradient_exchange.h"

namespace cohort::internal {

// The variables of a step; they may be stored anywhere.
struct VariableList {
  size_t size;
  FunctionRef<const distribute::Variable&(size_t)> at;

  std::vector<distribute::Variable> copy() const;
};

// "'a', 'b'", for messages.
std::string list_names(const std::vector<distribute::Variable>& variables);

// The exchanges of one optimizer.
// Thread safety: any thread; each replica on its own thread.
class ExchangePlans {
 public:
  // Makes the targets of variables that no earlier list contained; runs once for all replicas, in
  // cross-replica context.
  using MakeTargets =
      FunctionRef<std::vector<UpdateTarget>(const std::vector<distribute::Variable>&)>;

  // owner: for messages, "optimizer 'Adam'".
  explicit ExchangePlans(std::string owner) : owner_(std::move(owner)) {}

  // COLLECTIVE in the first step with these variables, and after the group has formed again.
  // Errors: InvalidArgument (replicas with different variables, naming them; a variable twice; a
  // dtype other than float32 and float64), FailedPrecondition (variables of a strategy other than
  // the replica's), what make_targets throws.
  std::shared_ptr<GradientExchange> of(Replica& replica, const VariableList& variables,
                                       MakeTargets make_targets);
  // The same before the first step, in the scope of the variables' strategy or outside of steps.
  void make(const VariableList& variables, MakeTargets make_targets);

 private:
  struct Plan {
    StrategyCore* core;
    int64_t generation;
    std::shared_ptr<GradientExchange> exchange;
  };

  std::shared_ptr<GradientExchange> find(const VariableList& variables) const;
  std::shared_ptr<GradientExchange> agree(Replica& replica, const VariableList& variables,
                                          MakeTargets make_targets);
  std::shared_ptr<GradientExchange> make(const std::vector<distribute::Variable>& variables,
                                         MakeTargets make_targets);
  void check(const std::vector<distribute::Variable>& variables) const;

  const std::string owner_;
  mutable std::mutex mutex_;
  std::vector<Plan> plans_;  // guarded by mutex_
};

}  // namespace cohort::internal
