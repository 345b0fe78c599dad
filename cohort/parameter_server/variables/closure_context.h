// The closure that the calling thread runs for a coordinator.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace cohort::distribute {
class DistributedIterator;
}

namespace cohort::internal {

struct CachedReads;

struct ClosureContext {
  uint64_t id = 0;
  uint64_t forget_below = 0;  // closures below have ended for good
  int worker = 0;
  bool makes_input = false;  // it makes the worker's input, and runs no step
  std::vector<distribute::DistributedIterator*> inputs = {};
  uint64_t steps = 0;        // that have been pushed so far
  uint64_t assignments = 0;  // outside of steps
  std::chrono::steady_clock::time_point arrived = {};
  const std::atomic<int>* waiting = nullptr;  // how many closures the worker has beside it
  // What each of the worker's replicas has read; null: reads are not cached.
  std::shared_ptr<std::vector<CachedReads>> reads = nullptr;

  // Each push of a closure has a token of its own, the same if the closure runs again. Steps and
  // assignments outside of them are numbered apart: a function that assigns only where it finds no
  // value yet has the same steps the second time.
  static constexpr uint64_t kMostPushes = uint64_t{1} << 16;
  // Assignments may come from any of the closure's threads, steps from its own.
  // Errors: ResourceExhausted (more of them than have tokens).
  uint64_t token_of_next_step();
  uint64_t token_of_next_assignment();
  uint64_t assignments_so_far();
};

// nullptr: the thread runs none.
ClosureContext* current_closure();
// Refuses a call that waits for closures, or for a worker: a closure that made it would wait for
// itself. Errors: FailedPrecondition (in a closure).
void refuse_in_closure(const char* call);

class [[nodiscard]] ScopedClosure {
 public:
  explicit ScopedClosure(ClosureContext& context);
  ~ScopedClosure();
  ScopedClosure(const ScopedClosure&) = delete;
  ScopedClosure& operator=(const ScopedClosure&) = delete;

 private:
  ClosureContext* const previous_;
};

}  // namespace cohort::internal
