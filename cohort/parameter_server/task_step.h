// What one task of a parameter server cluster uses and changes in a step: one pull before it, one push
// after it, per ps task.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cohort/parameter_server/store/store_client.h"

namespace cohort::internal {

class ServedVariable;

// Thread safety: any thread, where it is not the thread of the step alone.
class TaskStep {
 public:
  // From the next step on the variable is pulled with the others, while steps read all of it.
  void use(const std::shared_ptr<ServedVariable>& variable);
  // To be sent after the step.
  void add(int ps, StoreOp op);

  // Before a step: brings the used variables up to date, and forgets what a failed step left.
  void begin(const StoreClient& store);
  // After it: sends what it changed, once per token.
  void end(const StoreClient& store);

 private:
  std::mutex mutex_;  // guards what follows
  std::vector<std::weak_ptr<ServedVariable>> used_;
  std::vector<std::vector<StoreOp>> ops_;  // by ps task
};

}  // namespace cohort::internal
