// What one task of a parameter server cluster uses and changes in a step: one pull before it, one
// push after it, per ps task. Where another closure waits for the task, the push asks for the next
// step's pull in the same call, and nobody waits for its answer before that step begins.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/store/store_client.h"

namespace cohort::internal {

struct ClosureContext;

// A variable, as the step of a task uses it. The task has a copy of it, or of some of its rows.
class StepVariable {
 public:
  virtual ~StepVariable() = default;
  virtual size_t num_shards() const = 0;
  // Forgets what the last step has read. Returns whether the value is to be pulled for the next
  // one.
  virtual bool begin_step() = 0;
  // Whether begin_step will say so before the next step.
  virtual bool pulls_next() = 0;
  // The rows that the next step is likely to look up, since this one has looked up those of the one
  // before: ids, strictly ascending; undefined: there is no telling.
  virtual Tensor rows_for_next() = 0;
  // Adds the versions of the shards that the task has.
  virtual void add_known(std::vector<StoreClient::Known>& shards) = 0;
  // Takes newer values of the shards. If some are missing the task has none any more.
  virtual void take(std::span<const VariableStore::Value> values) = 0;
  // Adds a question for each shard that has any of the rows.
  virtual void add_rows(const Tensor& ids, std::vector<StoreClient::Rows>& rows) = 0;
  // Takes the answers. The rows then count as looked up before the step began.
  virtual void take_rows(const Tensor& ids, std::span<const VariableStore::Value> parts) = 0;
};

// An update of variables that is on its way to the ps tasks when the step has ended.
struct StepUpdate {
  std::vector<std::shared_ptr<StepVariable>> written;
  std::function<void()> apply_here;  // to the task's copies
};

// Thread safety: any thread, where it is not the thread of the step alone.
class TaskStep {
 public:
  // Pulls the variable with the others from the next step on, while steps read all of it.
  void use(const std::shared_ptr<StepVariable>& variable);
  // To be sent after the step.
  void add(int ps, StoreOp op);
  // What was added for the ps tasks as a whole, for this step's own eyes.
  void add(StepUpdate update);
  // Before the step reads or writes a variable: applies to the task's copies what updates of the
  // step have done to it. If there are none, as in most steps, it does nothing; else it reads the
  // slots from the ps tasks.
  void see_updates(const StepVariable& variable);

  // Before a step: brings the used variables up to date, and forgets what a failed step left.
  // Errors: also those of the closure's push that was under way.
  void begin(const StoreClient& store, SessionId session);
  // After it: sends what it changed, once per token. In a closure it does not wait: see last_push.
  void end(const StoreClient& store, SessionId session);
  // Outside of steps, ops[i] for ps task i: sends them and waits. In a closure once per token, too.
  void apply_now(const StoreClient& store, std::vector<std::vector<StoreOp>> ops);

  // Before the task reads outside of steps: waits for its push that is under way, if one is.
  // Errors: those of the push, if it is of the closure that runs.
  void settle() const;
  // Settles before a write: what came with the push is no next step's pull any more.
  void forget_pull();
  // The push of the closure that runs, if it is under way or was the last; else null.
  std::shared_ptr<PushUnderWay> last_push() const;

 private:
  using Clock = std::chrono::steady_clock;
  using VariablePtr = std::shared_ptr<StepVariable>;
  // The values that were asked for with a push.
  struct Table {
    std::weak_ptr<StepVariable> variable;
    Tensor ids;
    size_t parts = 0;  // of the pull's rows, one for each ps task that has any
  };
  struct Asked {
    std::vector<std::weak_ptr<StepVariable>> whole;
    std::vector<Table> tables;
    bool is_empty() const { return whole.empty() && tables.empty(); }
  };
  struct Sent {
    std::shared_ptr<PushUnderWay> push = nullptr;
    uint64_t closure = 0;
    Clock::time_point closure_arrived = {};  // one that runs again has the same number
    SessionId session = 0;
    Clock::time_point at = {};
    Asked asked = {};
    // Whether it is of the closure that the calling thread runs.
    bool is_own() const;
  };

  // A push of the closure that runs, of which ps tasks apply each token once; without a closure one
  // that they apply each time.
  static StoreClient::Push push_with(uint64_t (ClosureContext::*next_token)());
  std::vector<VariablePtr> used_variables();
  // Whether the next step is likely to take what this one asks for.
  bool asks_ahead();
  StoreClient::Pull ask_ahead(Asked& asked);
  // Takes the updates that the variable's value, or what they share with one of these, depends on,
  // in their order.
  std::vector<StepUpdate> take_updates(const StepVariable& variable);
  void forget_updates();
  // Takes what came with the last push, where it counts; leaves those of `wanted` that did not
  // come.
  void take_ahead(const Sent& sent, SessionId session, std::vector<VariablePtr>& wanted);

  std::atomic<bool> has_updates_{false};  // the step has had some
  std::mutex seeing_;                     // held while they are applied, before mutex_
  mutable std::mutex mutex_;              // guards what follows
  std::vector<std::weak_ptr<StepVariable>> used_;
  std::vector<std::vector<StoreOp>> ops_;  // by ps task
  std::vector<StepUpdate> updates_;        // of this step, that its copies have not
  Sent sent_;                              // since the last step
  int passed_over_ = 0;                    // how many pushes more do not ask ahead
};

}  // namespace cohort::internal
