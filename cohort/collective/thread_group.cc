#include "cohort/collective/thread_group.h"

#include <cstring>

#include "cohort/core/forced_unwind.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {

using internal::str;
using internal::WaitPoint;

ThreadGroup::ThreadGroup(int size, std::chrono::nanoseconds spin, MemberNames names)
    : payloads_(static_cast<size_t>(size)), spin_(spin), names_(names) {
  for (int i = 0; i < size; ++i) members_.push_back(std::make_unique<Member>());
}

std::string ThreadGroup::name_of(size_t member) const {
  return str(names_.noun, ' ', static_cast<size_t>(names_.first) + member);
}

void ThreadGroup::begin(const RoundOptions& options) {
  options_ = options;
  for (auto& member : members_) {
    member->state.store(State::kRunning, std::memory_order_relaxed);
    member->barriers.store(0, std::memory_order_relaxed);
  }
  barrier_ = (generation_of(barrier_) + 1) << 32;
  left_ = 0;
  finished_ = 0;
  turn_ = 0;
  broken_ = false;
  barrier_error_ = nullptr;
  error_ = nullptr;
}

void ThreadGroup::enter(int rank) {
  if (options_.sequential) wait_for_turn(rank);
}

void ThreadGroup::leave(int rank) {
  if (!home_.is_here()) return;  // the members are in the parent, with the locks that they hold
  members_[rank]->state = State::kLeft;
  left_.fetch_add(1);
  // Members that wait now, or come later, see that the barrier can never be complete.
  const uint64_t barrier = barrier_.load();
  const bool waited_for = (barrier & kCount) > 0 && (barrier & kClosed) == 0;
  if (waited_for && close_barrier(generation_of(barrier))) {
    break_round(std::make_exception_ptr(FailedPreconditionError(
        str("some ", names_.noun,
            "s made a different number of merge_call, all_reduce or other "
            "collective calls: ",
            name_of(rank), " ended its step after ", members_[rank]->barriers.load(),
            " of them while others wait for it; missing: ", missing_members()))));
  }
  if (options_.sequential) pass_turn(rank + 1);
}

void ThreadGroup::fail(int rank) {
  if (!home_.is_here()) return;
  members_[rank]->state = State::kFailed;
  close_current_barrier();
  broken_ = true;
  wake_all();
}

void ThreadGroup::meet(int rank, const char* what, void* mine,
                       FunctionRef<void(std::span<void* const>)> leader,
                       std::chrono::nanoseconds timeout) {
  gather(rank, what, mine, leader, timeout);
  if (options_.sequential) wait_for_turn(rank);
  if (barrier_error_) std::rethrow_exception(barrier_error_);
}

// Waits for all; returns when the leader's function has. Its error is in barrier_error_.
void ThreadGroup::gather(int rank, const char* what, void* mine,
                         FunctionRef<void(std::span<void* const>)> leader,
                         std::chrono::nanoseconds timeout) {
  home_.check("the step that makes this collective call");
  if (broken_.load()) throw_broken();
  Member& me = *members_[rank];
  payloads_[rank] = mine;
  me.what = what;
  me.state = State::kWaiting;
  const uint64_t before = barrier_.fetch_add(1);
  if (before & kClosed) throw_broken();
  const uint64_t generation = generation_of(before);
  if (left_.load() > 0 && close_barrier(generation)) {
    break_round(std::make_exception_ptr(
        FailedPreconditionError(str("some ", names_.noun,
                                    "s made a different number of merge_call, all_reduce or other "
                                    "collective calls: ",
                                    name_of(rank), " is at ", what, " after ", me.barriers.load(),
                                    " of them; missing: ", missing_members()))));
  }
  if (static_cast<int>(before & kCount) + 1 == size()) {
    lead(generation, leader);
  } else {
    if (options_.sequential) pass_turn(rank + 1);
    wait_for_barrier(rank, generation, what, timeout.count() > 0 ? timeout : options_.timeout);
  }
  me.barriers.fetch_add(1, std::memory_order_relaxed);
}

COHORT_CATCHES_FORCED_UNWIND
void ThreadGroup::lead(uint64_t generation, FunctionRef<void(std::span<void* const>)> leader) {
  barrier_error_ = nullptr;
  try {
    check_same_barrier();
    leader(payloads_);
  } catch (abi::__forced_unwind&) {  // pthread_exit: the thread cannot be kept
    barrier_error_ = std::make_exception_ptr(FailedPreconditionError(
        str("the thread of a ", names_.noun, " was ended in ", members_[0]->what,
            " by pthread_exit or pthread_cancel; return from the function, or throw")));
    end_barrier(generation);
    throw;
  } catch (...) {
    barrier_error_ = std::current_exception();
  }
  end_barrier(generation);
}

void ThreadGroup::end_barrier(uint64_t generation) {
  for (auto& member : members_) member->state.store(State::kRunning, std::memory_order_relaxed);
  barrier_.store((generation + 1) << 32);
  if (options_.sequential) pass_turn(0);
  wait_point_.notify();
}

void ThreadGroup::wait_for_barrier(int rank, uint64_t generation, const char* what,
                                   std::chrono::nanoseconds timeout) {
  const internal::ScopedPhase phase(profiler::Phase::kWait);
  const auto over = [&] {
    const uint64_t barrier = barrier_.load();
    return generation_of(barrier) != generation || (barrier & kClosed) != 0;
  };
  const auto deadline = WaitPoint::Clock::now() + internal::bounded_wait(timeout);
  // In a sequential round a member is woken once, when its turn comes behind the barrier.
  const auto over_and_its_turn = [&] {
    return over() && (has_turn(rank) || broken_.load() || (barrier_.load() & kClosed) != 0);
  };
  const bool came =
      options_.sequential
          ? members_[rank]->its_turn.wait(over_and_its_turn, std::chrono::nanoseconds(0), deadline)
          : wait_point_.wait(over, spin_, deadline);
  if (!came) {
    const std::string missing = missing_members();
    if (close_barrier(generation)) {
      const auto seconds = std::chrono::duration<double>(timeout).count();
      break_round(std::make_exception_ptr(DeadlineExceededError(
          str("waited ", seconds, " s in ", what, " for ", missing, "; every ", names_.noun,
              " must make the same collective calls in the same order (raise the timeout if a ",
              names_.noun, " may be this late)"))));
    } else {
      // The last member came after all: it is in the leader's function, or has left it.
      wait_point_.wait(over, spin_, WaitPoint::kForever);
    }
  }
  if (generation_of(barrier_.load()) == generation) throw_broken();
}

void ThreadGroup::check_same_barrier() const {
  for (const auto& member : members_) {
    if (member->what == members_[0]->what || std::strcmp(member->what, members_[0]->what) == 0) {
      continue;
    }
    std::string text = str(names_.noun, "s met in different collective calls:");
    for (size_t i = 0; i < members_.size(); ++i) {
      text += str(i == 0 ? " " : ", ", name_of(i), " in ", members_[i]->what);
    }
    throw FailedPreconditionError(
        str(text, "; every ", names_.noun, " must make the same calls in one order"));
  }
}

void ThreadGroup::share(int rank, const char* what, void* mine,
                        FunctionRef<void(std::span<void* const>)> check,
                        FunctionRef<void(std::span<void* const>)> work,
                        std::chrono::nanoseconds timeout) {
  gather(rank, what, mine, check, timeout);
  if (barrier_error_) {
    if (options_.sequential) wait_for_turn(rank);
    std::rethrow_exception(barrier_error_);
  }
  // No member may leave from here to finish(): the others use its memory. Hence no deadline.
  if (options_.sequential) {
    members_[rank]->its_turn.wait([&] { return has_turn(rank); }, std::chrono::nanoseconds(0),
                                  WaitPoint::kForever);
  }
  std::exception_ptr failure;
  try {
    work(payloads_);
  } catch (...) {
    failure = std::current_exception();
  }
  finish(rank);
  if (failure) std::rethrow_exception(failure);
}

// No deadline and no errors: members read each other's memory until all are here.
void ThreadGroup::finish(int rank) {
  const internal::ScopedPhase phase(profiler::Phase::kWait);
  if (options_.sequential) pass_turn(rank + 1);
  const uint64_t generation = finish_generation_.load();
  const auto over = [&] { return finish_generation_.load() != generation; };
  if (finished_.fetch_add(1) + 1 == size()) {
    finished_.store(0);
    finish_generation_.fetch_add(1);
    if (options_.sequential) pass_turn(0);
    broken_.load() ? wake_all() : wait_point_.notify();
  } else if (options_.sequential) {
    members_[rank]->its_turn.wait([&] { return over() && (has_turn(rank) || broken_.load()); },
                                  std::chrono::nanoseconds(0), WaitPoint::kForever);
  } else {
    wait_point_.wait(over, spin_, WaitPoint::kForever);
  }
  if (options_.sequential) wait_for_turn(rank);
}

// No member can complete that barrier from here on. False where all had already come.
bool ThreadGroup::close_barrier(uint64_t generation) {
  uint64_t barrier = barrier_.load();
  while (generation_of(barrier) == generation) {
    if (barrier & kClosed) return true;
    if (static_cast<int>(barrier & kCount) == size()) return false;
    if (barrier_.compare_exchange_weak(barrier, barrier | kClosed)) return true;
  }
  return false;
}

// For a member that is not in it, so that it cannot be complete.
void ThreadGroup::close_current_barrier() { close_barrier(generation_of(barrier_.load())); }

void ThreadGroup::break_round(std::exception_ptr error) {
  {
    std::lock_guard lock(error_mutex_);
    if (!error_) error_ = error;
  }
  broken_ = true;
  wake_all();
}

void ThreadGroup::wake_all() {
  wait_point_.notify();
  for (const auto& member : members_) member->its_turn.notify();
}

void ThreadGroup::wait_for_turn(int rank) {
  // Everybody before this member may take the whole timeout.
  const auto deadline = WaitPoint::Clock::now() + internal::bounded_wait(options_.timeout) * size();
  const auto come = [&] { return has_turn(rank) || broken_.load(); };
  if (!members_[rank]->its_turn.wait(come, std::chrono::nanoseconds(0), deadline)) {
    close_current_barrier();
    break_round(std::make_exception_ptr(DeadlineExceededError(
        str(name_of(rank), " waited for its turn until the deadline; ", name_of(turn_.load()),
            " has not given it on (RunOptions::concurrent is false)"))));
  }
  if (broken_ && !has_turn(rank)) throw_broken();
}

// The others sleep on: where members share one core, a thread that is woken in vain costs the one
// that has its turn.
void ThreadGroup::pass_turn(int rank) {
  turn_.store(rank);
  if (rank < size()) members_[rank]->its_turn.notify();
}

void ThreadGroup::throw_broken() {
  // The member that has closed the barrier says next why.
  wait_point_.wait([&] { return broken_.load(); }, spin_, WaitPoint::kForever);
  if (std::exception_ptr error = this->error()) std::rethrow_exception(error);
  throw GroupBrokenError(
      str("the step was given up because another of its ", names_.noun, "s failed"));
}

std::exception_ptr ThreadGroup::error() const {
  std::lock_guard lock(error_mutex_);
  return error_;
}

std::string ThreadGroup::missing_members() const {
  std::string text;
  for (size_t i = 0; i < members_.size(); ++i) {
    const State state = members_[i]->state.load();
    if (state == State::kWaiting) continue;
    const char* where = state == State::kRunning ? " (still in its step)"
                        : state == State::kLeft  ? " (its step has ended)"
                                                 : " (failed)";
    text += str(text.empty() ? "" : ", ", name_of(i), where);
  }
  return text;
}

std::string ThreadGroup::members_inside() const {
  std::string text;
  for (size_t i = 0; i < members_.size(); ++i) {
    const State state = members_[i]->state.load();
    if (state == State::kLeft || state == State::kFailed) continue;
    text += str(text.empty() ? "" : ", ", name_of(i));
  }
  return text;
}

}  // namespace cohort::collective
