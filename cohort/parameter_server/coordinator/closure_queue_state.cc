// What a queue says of itself where a call waits too long.
#include <map>

#include "cohort/core/error.h"
#include "cohort/parameter_server/coordinator/closure_queue.h"

namespace cohort::internal {

double ClosureQueue::in_seconds(std::chrono::nanoseconds duration) {
  return static_cast<double>(duration / std::chrono::milliseconds(100)) / 10;
}

std::string ClosureQueue::state() const {
  constexpr size_t kMostWorkers = 10;
  std::string text = str(queue_.size(), " closures are queued, ", flights_.size(), " under way");
  if (!awaiting_.empty()) text += str(", ", awaiting_.size(), " wait for their arguments");
  struct OfWorker {
    const Flight* oldest = nullptr;
    size_t count = 0;
  };
  std::map<int, OfWorker> of_workers;
  for (const auto& [key, flight] : flights_) {
    OfWorker& mine = of_workers[flight.worker];
    ++mine.count;
    if (mine.oldest == nullptr || flight.closure->id < mine.oldest->closure->id) {
      mine.oldest = &flight;
    }
  }
  size_t named = 0;
  for (const auto& [worker, mine] : of_workers) {
    if (++named > kMostWorkers) return text + str("; and so on, ", of_workers.size(), " workers");
    const Closure& closure = *mine.oldest->closure;
    text += str("; worker ", worker, " runs '", closure.function, "' (closure ", closure.number,
                ") for ", in_seconds(Clock::now() - mine.oldest->since), " s");
    if (mine.count > 1) text += str(", ", mine.count - 1, " more behind it");
  }
  return text;
}

}  // namespace cohort::internal
