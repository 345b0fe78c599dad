// How gradients become new values of variables: what a strategy does in a step between the backward
// pass and the updated weights. An optimizer says what is to be done, not how gradients travel.
//
//   GradientExchange& exchange = ...;              // made by the strategy for a list of variables
//   exchange.begin(replica, Arrival::kAtOnce);     // each replica
//   exchange.bring(replica, i, gradient);          // for each variable that has one
//   exchange.finish(replica, {.rule = rule, .learning_rate = 0.1});
#pragma once

#include <memory>
#include <vector>

#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/variable.h"
#include "cohort/optim/update_rule.h"

namespace cohort {
class GradientTape;
}

namespace cohort::internal {

class GradientStream;

// A variable and its optimizer slots, in the rule's order; all of one shape and dtype, all made
// under one strategy.
struct UpdateTarget {
  distribute::Variable variable;
  std::vector<distribute::Variable> slots;
};

// What is done with the sums of one step.
struct UpdateStep {
  const optim::UpdateRule& rule;
  double learning_rate = 0;
  // Updates applied before this one.
  int64_t iteration = 0;
  // False: the gradients are equal on all replicas already; replica 0's are used.
  bool aggregate_gradients = true;
  // Between sum and update: scales all gradients so that the root of the sum of their squares is at
  // most this. 0: they stay as they are.
  double global_clipnorm = 0;
  // Between sum and update: leaves every variable as it is where a sum is not finite.
  bool skip_not_finite = false;

  bool transforms_sums() const { return global_clipnorm > 0 || skip_not_finite; }
};

struct UpdateResult {
  bool updated = true;  // false: a sum was not finite
  // Before clipping; 0 where the step does not ask for it.
  double global_norm = 0;
};

enum class Arrival {
  kAtOnce,    // all gradients are there when the first is brought
  kOneByOne,  // out of a backward pass: they may travel while it goes on
};

// For one list of variables of one strategy, and one group of replicas.
// Thread safety: each replica for itself.
class GradientExchange {
 public:
  explicit GradientExchange(std::vector<UpdateTarget> targets, size_t local_replicas);
  virtual ~GradientExchange();
  GradientExchange(const GradientExchange&) = delete;
  GradientExchange& operator=(const GradientExchange&) = delete;

  const std::vector<UpdateTarget>& targets() const { return targets_; }

  // Begins the replica's part of a step and forgets what it brought before. With kOneByOne
  // COLLECTIVE. Errors: InvalidArgument (replicas with other variables, naming the first).
  virtual void begin(distribute::ReplicaContext& replica, Arrival arrival) = 0;
  // The replica's gradient of a target, at most once a step: of its shape and dtype, dense or of
  // rows. One that is not brought, or undefined, counts as zeros.
  // Errors: InvalidArgument (shape or dtype, naming variable and replica).
  virtual void bring(distribute::ReplicaContext& replica, size_t target,
                     const Tensor& gradient) = 0;
  // Whether the replica has brought one.
  virtual bool has(const distribute::ReplicaContext& replica, size_t target) const = 0;
  // Sums over replicas, in an order that does not change, and updates every target that any of them
  // has a gradient of. COLLECTIVE. Returns when all of the task's replicas have finished.
  // Errors: InvalidArgument (replicas with other variables), FailedPrecondition, DeadlineExceeded
  // and those of a Communicator's calls, as ReplicaContext.
  virtual UpdateResult finish(distribute::ReplicaContext& replica, const UpdateStep& step) = 0;

  // begin, and bring for every gradient of `loss`. COLLECTIVE. Errors: also GradientTape::gradient's.
  void backward(distribute::ReplicaContext& replica, const Tensor& loss, GradientTape& tape);

 protected:
  // Whether gradients that come one by one leave before the last has come.
  virtual bool overlaps() const = 0;

 private:
  GradientStream& stream_of(const distribute::ReplicaContext& replica);

  std::vector<UpdateTarget> targets_;
  std::vector<std::unique_ptr<GradientStream>> streams_;  // one a local replica, made by it
};

// Throws the InvalidArgument of replicas that bring gradients of other variables than each other.
void check_same_targets(const GradientExchange& first, int first_replica,
                        const GradientExchange& other, int other_replica);

}  // namespace cohort::internal
