// What a queue says of itself where a call waits too long.
#include <algorithm>
#include <map>
#include <mutex>
#include <string>

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

std::string ClosureQueue::idle_text(const std::string& what, Clock::time_point began) const {
  const Clock::time_point now = Clock::now();
  const auto idle = now - std::max(began, last_end_);
  if (idle < options_.report_after) return "";
  return str(what, " has waited for ", in_seconds(now - began), " s, and no closure has ended for ",
             in_seconds(idle), " s: ", state());
}

void ClosureQueue::report_wait(const std::string& what, Clock::time_point began) const {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text = idle_text(what, began);
  }
  if (!text.empty() && options_.on_report) options_.on_report(text);
}

std::string ClosureQueue::state_of(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, flight] : flights_) {
    if (flight.closure->id != id) continue;
    return str("worker ", flight.worker, " has had it for ",
               in_seconds(Clock::now() - flight.since), " s; ", state());
  }
  for (const auto& [key, closure] : awaiting_) {
    if (closure->id == id) return str("it waits for its arguments; ", state());
  }
  return str("it waits for a worker; ", state());
}

}  // namespace cohort::internal
