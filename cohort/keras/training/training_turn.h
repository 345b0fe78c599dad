// The turn of the thread that trains or evaluates a model: one at a time, since both change its
// metrics and what the calls report. A callback of that thread may begin another call.
//
//   const TrainingTurn turn(training.turns, *model, "fit");
#pragma once

#include <mutex>
#include <string>
#include <thread>

namespace cohort::internal {

// Thread safety: any thread.
class TrainingTurns {
 public:
  // Whether a call of any thread is under way.
  bool are_taken() const {
    const std::lock_guard lock(mutex_);
    return depth_ > 0;
  }
  // Whether one is under way within another.
  bool are_nested() const {
    const std::lock_guard lock(mutex_);
    return depth_ > 1;
  }

 private:
  friend class TrainingTurn;

  mutable std::mutex mutex_;
  std::thread::id thread_;  // guarded by mutex_, as is what follows
  int depth_ = 0;           // of calls within callbacks
};

class [[nodiscard]] TrainingTurn {
 public:
  // Errors: FailedPrecondition (another thread is at it; names the model and the call).
  TrainingTurn(TrainingTurns& turns, const std::string& model, const char* call);
  ~TrainingTurn();
  TrainingTurn(const TrainingTurn&) = delete;
  TrainingTurn& operator=(const TrainingTurn&) = delete;

 private:
  TrainingTurns& turns_;
};

}  // namespace cohort::internal
