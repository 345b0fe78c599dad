// The path from gradients to new values of variables: what a strategy does in a step between the
// backward pass and the updated weights. An optimizer says what is to be done, not how gradients
// travel.
//
//   GradientExchange& exchange = ...;              // made by the strategy for a list of variables
//   exchange.begin(replica, Arrival::kAtOnce);     // each replica
//   exchange.bring(replica, i, gradient);          // for each variable that has one
//   exchange.finish(replica, {.rule = rule, .learning_rate = 0.1});
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/optim/update_rule.h"

namespace cohort {
class GradientTape;
}

namespace cohort::internal {

class GradientStream;

// A variable and its optimizer slots, in the rule's order and of its shapes. All have the same
// dtype, and were created under the same strategy.
struct UpdateTarget {
  distribute::Variable variable;
  std::vector<distribute::Variable> slots;
  bool decays = true;  // false: excluded from weight decay
};

// What to do with the sums of one step.
struct UpdateStep {
  const optim::UpdateRule& rule;
  // For targets that are excluded from weight decay; nullptr: `rule`. Takes the same StepScalars.
  const optim::UpdateRule* rule_without_decay = nullptr;
  double learning_rate = 0;
  // Whether it follows from the iteration; else it stays until the program sets another.
  bool rate_is_scheduled = false;
  // The number of updates before this one.
  int64_t iteration = 0;
  // False: the gradients are already equal on all replicas, and those of replica 0 are used.
  bool aggregate_gradients = true;
  // Multiplies the sums before all else, to undo what a loss was multiplied by.
  double factor = 1;
  // Scales each target's gradient, between sum and update, so that its norm is at most this. 0: no
  // scaling.
  double clipnorm = 0;
  // Scales all gradients, between sum and update, so that their global norm (the root of the sum of
  // all squares) is at most this. 0: no scaling.
  double global_clipnorm = 0;
  // Leaves every variable unchanged if a sum is not finite.
  bool skip_not_finite = false;
  // What rule.prepare gives in each replay of a step that is recorded; empty: it is not.
  std::function<optim::StepScalars()> scalars_of_replay = nullptr;

  bool clips() const { return clipnorm > 0 || global_clipnorm > 0; }
  bool needs_norms() const { return clips() || skip_not_finite; }
  bool transforms_sums() const {
    return needs_norms() || factor != 1 || rule.updates_whole_variables();
  }
  const optim::UpdateRule& rule_of(const UpdateTarget& target) const {
    return target.decays || rule_without_decay == nullptr ? rule : *rule_without_decay;
  }
};

// The factor by which numbers of this norm are multiplied so that it is `most` at most. It is NaN,
// as in Keras, if the norm is NaN, or if it is infinite and that of all gradients together.
double clip_factor(double norm, double most);
double global_clip_factor(double norm, double most);

struct UpdateResult {
  bool updated = true;  // false: a sum was not finite
  // Before clipping; 0 where the step does not ask for it, or the host does not wait for it.
  double global_norm = 0;
};

enum class Arrival {
  kAtOnce,    // all gradients are ready when the first is passed
  kOneByOne,  // from a running backward pass: they may be exchanged meanwhile
};

// Belongs to one list of variables of one strategy, and one group of replicas.
// Thread safety: one thread per replica.
class GradientExchange {
 public:
  explicit GradientExchange(std::vector<UpdateTarget> targets, size_t local_replicas);
  virtual ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  const std::vector<UpdateTarget>& targets() const { return targets_; }

  // Begins the replica's part of a step and forgets its earlier gradients. With kOneByOne
  // COLLECTIVE.
  // Errors: InvalidArgument (replicas with different variables, naming the first).
  virtual void begin(Replica& replica, Arrival arrival) = 0;
  // Passes the replica's gradient of a target, at most once per step. It has the target's shape and
  // dtype, and is dense or consists of sparse rows. A missing or undefined gradient counts as
  // zeros.
  // Errors: InvalidArgument (shape or dtype, naming variable and replica).
  virtual void bring(Replica& replica, size_t target, const Tensor& gradient) = 0;
  // Whether the replica has passed a gradient of this target.
  virtual bool has(const Replica& replica, size_t target) const = 0;
  // Sums over replicas, in a fixed order, and updates every target of which any replica has a
  // gradient.
  // COLLECTIVE. Returns when all of the task's replicas have finished.
  // Errors: InvalidArgument (replicas with different variables), FailedPrecondition,
  // DeadlineExceeded and those of a Communicator's calls, as ReplicaContext.
  virtual UpdateResult finish(Replica& replica, const UpdateStep& step) = 0;

  // Calls begin, then bring for every gradient of `loss`.
  // COLLECTIVE.
  // Errors: also GradientTape::gradient's.
  void backward(Replica& replica, const Tensor& loss, GradientTape& tape);

 protected:
  // Whether gradients that arrive one by one are exchanged before the last one has arrived.
  virtual bool overlaps() const = 0;

 private:
  GradientStream& stream_of(const Replica& replica);

  std::vector<UpdateTarget> targets_;
  std::vector<std::unique_ptr<GradientStream>> streams_;  // one per local replica, made by it
};

// Throws InvalidArgument if replicas pass gradients of different variables.
void check_same_targets(const GradientExchange& first, int first_replica,
                        const GradientExchange& other, int other_replica);

}  // namespace cohort::internal
