#include "cohort/keras/training/training_turn.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

TrainingTurn::TrainingTurn(TrainingTurns& turns, const std::string& model, const char* call)
    : turns_(turns) {
  const std::lock_guard lock(turns.mutex_);
  if (turns.depth_ > 0 && turns.thread_ != std::this_thread::get_id()) {
    throw FailedPreconditionError(
        str(call, ": model ", quoted(model),
            " is trained or evaluated by another thread at this moment; call one after the other, "
            "or give each thread a model of its own"));
  }
  turns.thread_ = std::this_thread::get_id();
  ++turns.depth_;
}

TrainingTurn::~TrainingTurn() {
  const std::lock_guard lock(turns_.mutex_);
  --turns_.depth_;
}

}  // namespace cohort::internal
