#include "cohort/parameter_server/closures/functions_in_use.h"

#include <algorithm>
#include <list>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/synchronized.h"

namespace cohort::internal {

struct FunctionsInUse::State {
  struct Begun {
    Use use;
    Clock::time_point since;
  };
  struct Uses {
    bool is_any_below(SessionId session) const {
      return std::any_of(begun.begin(), begun.end(),
                         [session](const Begun& one) { return one.use.session < session; });
    }

    std::list<Begun> begun;
    SessionId lowest = 0;
  };
  Synchronized<Uses> uses;
};

FunctionsInUse::FunctionsInUse() : state_(std::make_shared<State>()) {}

std::shared_ptr<void> FunctionsInUse::begin(Use use) {
  std::list<State::Begun>::iterator place;
  {
    const auto uses = state_->uses.lock();
    if (use.session < uses->lowest) {
      throw CancelledError(str(quoted(use.function), " was not run: the coordinator has ended"));
    }
    place = uses->begun.insert(uses->begun.end(), {std::move(use), Clock::now()});
  }
  return {nullptr, [state = state_, place](void*) { state->uses.change()->begun.erase(place); }};
}

void FunctionsInUse::refuse_below(SessionId session) {
  const auto uses = state_->uses.lock();
  uses->lowest = std::max(uses->lowest, session);
}

std::string FunctionsInUse::wait_for_end(SessionId below, Clock::time_point deadline) const {
  if (!home_.is_here()) return "";
  auto uses = state_->uses.lock();
  uses.wait_until(deadline, [&] { return !uses->is_any_below(below); });
  std::string left;
  for (const State::Begun& one : uses->begun) {
    if (one.use.session >= below) continue;
    const auto tenths = (Clock::now() - one.since) / std::chrono::milliseconds(100);
    left += str(left.empty() ? "" : ", ", "worker ", one.use.worker, ' ', one.use.does, ' ',
                quoted(one.use.function), " (for ", static_cast<double>(tenths) / 10, " s)");
  }
  return left;
}

}  // namespace cohort::internal
