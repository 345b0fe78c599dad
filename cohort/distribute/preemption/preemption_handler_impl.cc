#include "cohort/distribute/preemption/preemption_handler_impl.h"

#include <poll.h>

#include <cstdio>
#include <iostream>
#include <utility>

#include "cohort/core/caught_error.h"
#include "cohort/core/error.h"
#include "cohort/core/host/event_fd.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/distribute/preemption/run_calls.h"
#include "cohort/train/checkpoint_impl.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll = std::chrono::seconds(1);
// How long a task that has saved waits for the others, so that none sees it go too early.
constexpr milliseconds kLeave = std::chrono::seconds(5);
// The last save begins when this many average calls would fit into the time that is left:
// TensorFlow's 3 * 2.
constexpr int kCallsToSpare = 6;

constexpr const char* kObjectName = "preemption_checkpoint_handler";

// The grace of the task that has asked. Errors: DataLoss.
milliseconds parse_grace(const std::string& note) {
  const auto grace = parse_number<int64_t>(note);
  if (grace && *grace >= 0) return milliseconds(*grace);
  throw DataLossError(
      str("the task that has asked all to stop gives them a grace period of ", quoted(note)));
}

// Returns whether there is nothing more to answer. A coordinating task that stands still is asked
// again: it may go on.
bool answer_if_asked(StopAgreement& agreement) {
  try {
    return agreement.answer(kPoll);
  } catch (const DeadlineExceededError& error) {
    log_info("no answer to a task that may have asked all to stop: ", error.what());
    return false;
  }
}

// Ends the process without unwinding: the stack below belongs to the program, whose destructors may
// wait for tasks that are gone.
[[noreturn]] void exit_at_once(int code) {
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

PreemptionHandlerImpl::PreemptionHandlerImpl(StopGroup group,
                                             const train::CheckpointManager& manager, Config config)
    : group_(std::move(group)),
      manager_(manager),
      config_(std::move(config)),
      watch_(config_.termination_watcher_fn ? nullptr : std::make_unique<TerminationWatch>()),
      ended_event_(make_event_fd()),
      calls_(std::make_shared<RunCalls>()) {
  manager_.checkpoint().impl().add({kObjectName, calls_});
  manager_.restore_or_initialize();
  state_.lock()->rounds[0] = std::make_unique<StopAgreement>(group_, 0, calls_->value());
  try {
    asker_ = start_thread("to wait for the end of this machine with", [this] { wait_and_ask(); });
    if (group_.cluster != nullptr) {
      answerer_ = start_thread("to answer other tasks with", [this] { answer_others(); });
    }
  } catch (const ResourceExhaustedError&) {
    end_threads();
    throw;
  }
}

PreemptionHandlerImpl::~PreemptionHandlerImpl() { end_threads(); }

void PreemptionHandlerImpl::end_threads() {
  state_.change()->ended = true;
  signal_event(ended_event_.get());
  if (!is_over_) tell_the_end();
  if (asker_.joinable()) asker_.join();
  if (answerer_.joinable()) answerer_.join();
}

int64_t PreemptionHandlerImpl::total_run_calls() const { return calls_->value(); }

void PreemptionHandlerImpl::run(FunctionRef<void()> call) {
  home_.check("a PreemptionCheckpointHandler");
  throw_failure();
  if (!is_over_) own_round().begin_call();
  run_since(Clock::now(), call);
}

void PreemptionHandlerImpl::end_step() {
  home_.check("a PreemptionCheckpointHandler");
  throw_failure();
  const Clock::time_point begin = last_end_;
  if (!is_over_) own_round().begin_call();
  run_since(begin, [] {});
}

void PreemptionHandlerImpl::run_since(Clock::time_point begin, FunctionRef<void()> call) {
  try {
    call();
  } catch (...) {
    report(caught_error());
    throw;
  }
  calls_->add_one();
  {
    const auto state = state_.lock();
    last_end_ = Clock::now();
    state->time_in_calls += last_end_ - begin;
    ++state->timed_calls;
  }
  if (is_over_) return;
  if (own_round().finish_call()) return stop_here();
  if (round_ == 0) return;
  StopAgreement& first = *state_.lock()->rounds[0];
  if (first.is_due()) {  // its save has failed
    first.meet(calls_->value());
    save_for(first);
  }
}

void PreemptionHandlerImpl::report(const std::exception_ptr& error) const {
  if (group_.cluster == nullptr) return;
  try {
    group_.cluster->report(error);
  } catch (const std::exception& other) {
    log_info("the other tasks are not told of an error: ", other.what());
  }
}

// Tells tasks at their last calls not to wait for an answer, and those at the agreed call not to
// wait for the save.
void PreemptionHandlerImpl::tell_the_end() const {
  try {
    own_round().end();
  } catch (const std::exception& error) {
    log_info("the other tasks are not told that this one needs no more saving: ", error.what());
  }
}

void PreemptionHandlerImpl::stop_here() {
  StopAgreement& round = own_round();
  round.meet(calls_->value());
  const bool is_last = round_ == 1 || parse_grace(round.note()).count() == 0;
  if (!is_last) begin_second_round();
  save_for(round);
  if (is_last) leave();
}

void PreemptionHandlerImpl::begin_second_round() {
  state_.change()->rounds[1] = std::make_unique<StopAgreement>(group_, 1, calls_->value());
  round_ = 1;
}

// Saves as the group of the checkpoint, by which save_fn saves it, too.
void PreemptionHandlerImpl::save_for(StopAgreement& round) {
  const auto group = manager_.checkpoint().impl().talk("", milliseconds(0)).group();
  round.do_together(config_.save_fn ? "save_fn" : "the save", *group, [&] { save(); });
}

void PreemptionHandlerImpl::save() {
  if (config_.save_fn) {
    config_.save_fn();
    manager_.checkpoint().wait();  // it may have begun to save in the background
    return log_info("this machine will be taken away: the program has saved after call ",
                    calls_->value());
  }
  std::optional<std::string> path = manager_.save({.check_interval = false});
  // The function has saved after its step by itself, when its call was not counted yet.
  if (!path) path = manager_.checkpoint().write(manager_.latest_checkpoint().value());
  log_info("this machine will be taken away: saved '", *path, "' after call ", calls_->value());
}

void PreemptionHandlerImpl::leave() {
  if (group_.cluster != nullptr) {
    try {
      group_.cluster->barrier(str(group_.name, "/leave"),
                              {.tasks = group_.tasks, .timeout = kLeave});
    } catch (const std::exception& error) {
      log_info("left without the others: ", error.what());
    }
  }
  is_over_ = true;
  if (watch_ != nullptr) watch_->answer();
  if (!config_.exit_fn) exit_at_once(config_.exit_code);
  config_.exit_fn();
}

void PreemptionHandlerImpl::wait_and_ask() {
  try {
    if (!wait_for_termination()) return;
  } catch (...) {
    return note_failure();
  }
  const Clock::time_point told = Clock::now();
  const milliseconds grace = bounded_wait(config_.grace_period);
  const std::string note = decimal_digits(grace.count());
  if (!ask_until_decided(0, note) || grace.count() == 0 || wait_for_round(1) == nullptr) return;
  if (wait_until(told + grace - kCallsToSpare * average_call())) ask_until_decided(1, note);
}

// This machine will be taken away, whatever comes of an attempt.
bool PreemptionHandlerImpl::ask_until_decided(size_t round, const std::string& note) {
  StopAgreement* const agreement = wait_for_round(round);
  if (agreement == nullptr) return false;
  while (!agreement->is_settled()) {
    try {
      if (agreement->ask(note)) return true;
    } catch (...) {
      note_failure();
    }
    if (!wait_until(Clock::now() + kPoll)) return false;
  }
  return agreement->is_decided();
}

void PreemptionHandlerImpl::answer_others() {
  try {
    for (size_t round = 0; round < 2; ++round) {
      StopAgreement* const agreement = wait_for_round(round);
      if (agreement == nullptr) return;
      while (!answer_if_asked(*agreement)) {
        if (state_.lock()->ended) return;
      }
    }
  } catch (...) {
    note_failure();
  }
}

bool PreemptionHandlerImpl::wait_for_termination() {
  return watch_ != nullptr ? wait_for_signal() : poll_watcher();
}

bool PreemptionHandlerImpl::wait_for_signal() {
  pollfd watched[] = {{ended_event_.get(), POLLIN, 0}, {watch_->descriptor(), POLLIN, 0}};
  while (::poll(watched, std::size(watched), -1) < 0) continue;  // EINTR
  return watched[0].revents == 0;
}

bool PreemptionHandlerImpl::poll_watcher() {
  do {
    if (config_.termination_watcher_fn()) return true;
  } while (wait_until(Clock::now() + kPoll));
  return false;
}

StopAgreement* PreemptionHandlerImpl::wait_for_round(size_t round) {
  auto state = state_.lock();
  state.wait([&] { return state->ended || state->rounds[round] != nullptr; });
  return state->ended ? nullptr : state->rounds[round].get();
}

// Returns false if the handler ends before.
bool PreemptionHandlerImpl::wait_until(Clock::time_point time) {
  auto state = state_.lock();
  return !state.wait_until(time, [&] { return state->ended; });
}

milliseconds PreemptionHandlerImpl::average_call() const {
  const auto state = state_.lock();
  if (state->timed_calls == 0) return milliseconds(0);
  return std::chrono::ceil<milliseconds>(state->time_in_calls / state->timed_calls);
}

void PreemptionHandlerImpl::note_failure() { state_.lock()->failure = std::current_exception(); }

void PreemptionHandlerImpl::throw_failure() {
  const std::exception_ptr failure = std::exchange(state_.lock()->failure, nullptr);
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace cohort::internal
