#include "cohort/parameter_server/closures/functions_in_use.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

struct FunctionsInUse::State {
  struct Begun {
    Use use;
    Clock::time_point since;
  };

  bool is_any_below(SessionId session) const {
    return std::any_of(begun.begin(), begun.end(),
                       [session](const Begun& one) { return one.use.session < session; });
  }

  std::mutex mutex;  // guards what follows
  std::condition_variable ended;
  std::list<Begun> begun;
  SessionId lowest = 0;
};

FunctionsInUse::FunctionsInUse() : state_(std::make_shared<State>()) {}

std::shared_ptr<void> FunctionsInUse::begin(Use use) {
  std::list<State::Begun>::iterator place;
  {
    const std::lock_guard lock(state_->mutex);
    if (use.session < state_->lowest) {
      throw CancelledError(str(quoted(use.function), " was not run: the coordinator has ended"));
    }
    place = state_->begun.insert(state_->begun.end(), {std::move(use), Clock::now()});
  }
  return {nullptr, [state = state_, place](void*) {
            {
              const std::lock_guard ending(state->mutex);
              state->begun.erase(place);
            }
            state->ended.notify_all();
          }};
}

void FunctionsInUse::refuse_below(SessionId session) {
  const std::lock_guard lock(state_->mutex);
  state_->lowest = std::max(state_->lowest, session);
}

std::string FunctionsInUse::wait_for_end(SessionId below, Clock::time_point deadline) const {
  if (!home_.is_here()) return "";
  std::unique_lock lock(state_->mutex);
  state_->ended.wait_until(lock, deadline, [&] { return !state_->is_any_below(below); });
  std::string left;
  for (const State::Begun& one : state_->begun) {
    if (one.use.session >= below) continue;
    const auto tenths = (Clock::now() - one.since) / std::chrono::milliseconds(100);
    left += str(left.empty() ? "" : ", ", "worker ", one.use.worker, ' ', one.use.does, ' ',
                quoted(one.use.function), " (for ", static_cast<double>(tenths) / 10, " s)");
  }
  return left;
}

}  // namespace cohort::internal
