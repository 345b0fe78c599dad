#include "cohort/parameter_server/coordinator/remote_result.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using Call = std::function<void()>;

constexpr std::chrono::nanoseconds kLeastPause = std::chrono::milliseconds(1);  // between reports

// The calls that are due in this thread. Null: none is running.
thread_local std::deque<Call>* due = nullptr;

void call_in_turn(Call call) {
  if (due != nullptr) {
    due->push_back(std::move(call));
    return;
  }
  std::deque<Call> calls;
  calls.push_back(std::move(call));
  struct Turn {
    explicit Turn(std::deque<Call>& calls) { due = &calls; }
    ~Turn() { due = nullptr; }
  } const turn(calls);
  while (!calls.empty()) {
    const Call next = std::move(calls.front());
    calls.pop_front();
    next();
  }
}

}  // namespace

void RemoteResult::set(Structure value) {
  end([&](State& state) { state.value = std::move(value); });
}

void RemoteResult::fail(std::exception_ptr error) { fail(std::move(error), {}); }

void RemoteResult::fail(std::exception_ptr error, RootFailure root) {
  end([&](State& state) {
    state.error = std::move(error);
    state.root = std::move(root);
  });
}

void RemoteResult::end(FunctionRef<void(State&)> with) {
  std::vector<std::function<void(const RemoteResult&)>> calls;
  {
    const auto state = state_.change();
    if (state->is_ended) return;
    with(*state);
    state->is_ended = true;
    calls.swap(state->on_end);
  }
  for (auto& call : calls) {
    call_in_turn([self = shared_from_this(), call = std::move(call)] { call(*self); });
  }
}

void RemoteResult::on_end(std::function<void(const RemoteResult&)> call) {
  {
    const auto state = state_.lock();
    if (!state->is_ended) {
      state->on_end.push_back(std::move(call));
      return;
    }
  }
  call(*this);
}

RemoteStatus RemoteResult::status() const {
  const auto state = state_.lock();
  if (!state->is_ended) return RemoteStatus::kNotReady;
  return state->error == nullptr ? RemoteStatus::kReady : RemoteStatus::kAborted;
}

void RemoteResult::describe(std::function<ResultWait()> make) {
  state_.lock()->make_wait = std::move(make);
}

RootFailure RemoteResult::root() const {
  const auto state = state_.lock();
  if (state->error == nullptr || !state->root.text.empty()) return state->root;
  return {.text = record_error(state->error).message};
}

Structure RemoteResult::get(std::chrono::steady_clock::time_point deadline,
                            const std::string& what) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point began = Clock::now();
  std::function<ResultWait()> make;
  if (const auto state = state_.lock(); !state->is_ended) make = state->make_wait;
  std::optional<ResultWait> wait;
  if (make) wait = make();
  const auto pause =
      !wait ? std::chrono::nanoseconds(0) : std::max(wait->report_after, kLeastPause);
  Clock::time_point next_report = !wait ? Clock::time_point::max() : began + pause;
  while (true) {
    {
      auto state = state_.lock();
      if (state.wait_until(std::min(deadline, next_report), [&] { return state->is_ended; })) {
        if (state->error != nullptr) std::rethrow_exception(state->error);
        return state->value;
      }
    }
    const Clock::time_point now = Clock::now();
    if (now >= deadline) {
      if (!wait) throw DeadlineExceededError(str(what, " has not ended in time"));
      throw DeadlineExceededError(str(wait->what, " has not ended in time: ", wait->state()));
    }
    next_report = now + pause;
    wait->report(wait->what, began);
  }
}

}  // namespace cohort::internal
