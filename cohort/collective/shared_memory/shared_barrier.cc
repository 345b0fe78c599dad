#include "cohort/collective/shared_memory/shared_barrier.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/collective/groups_of_task.h"
#include "cohort/collective/slow_wait.h"
#include "cohort/core/host/cores.h"
#include "cohort/core/host/futex.h"

namespace cohort::collective::shared_memory {
namespace {

using internal::each_can_have_a_core;
using internal::futex_wait;
using internal::futex_wake_all;
using internal::own_cores;
using internal::str;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kFailed = 1;
constexpr uint32_t kOneMeeting = 2;
// How long a task sleeps before it looks whether others have ended.
constexpr milliseconds kSlice{5};
// How long the task that has ended the group may take to say why.
constexpr milliseconds kMostWriting{1000};

// A barrier of tasks that come at the same time takes less, and so does waking one that sleeps.
constexpr std::chrono::microseconds kPollingTime{100};

bool is_completed(uint32_t epoch, uint32_t before) { return ((epoch ^ before) & ~kFailed) != 0; }

}  // namespace

Waiting::Waiting(std::string_view for_call, std::chrono::nanoseconds for_time)
    : call(for_call), timeout(for_time) {
  const auto now = Clock::now();
  until = timeout < Deadline::max() - now ? now + timeout : Deadline::max();
}

SharedBarrier::SharedBarrier(Memory memory, const GroupMember& member, Lifelines lifelines,
                             TaskName task_name)
    : control_(*memory.control),
      slots_(memory.slots),
      rank_(member.rank),
      size_(member.size()),
      slow_after_(member.slow_after),
      lifelines_(std::move(lifelines)),
      task_name_(std::move(task_name)) {
  slots_[rank_].cores = own_cores();
}

void SharedBarrier::leave() {
  slots_[rank_].left.store(1);
  lifelines_.let_go();
}

void SharedBarrier::meet(const Waiting& waiting) {
  const uint32_t before = control_.epoch.load(std::memory_order_acquire);
  if ((before & kFailed) != 0) throw_failure();
  slots_[rank_].barriers.store(++barriers_, std::memory_order_release);
  if (control_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      static_cast<uint32_t>(size_)) {
    control_.arrived.store(0, std::memory_order_relaxed);
    uint32_t expected = before;
    if (!control_.epoch.compare_exchange_strong(expected, before + kOneMeeting)) throw_failure();
    if (control_.sleepers.load() != 0) futex_wake_all(control_.epoch);
  } else {
    wait(before, waiting);
  }
  if (barriers_ == 1) choose_polling_time();
}

void SharedBarrier::choose_polling_time() {
  std::vector<cpu_set_t> cores;
  for (int rank = 0; rank < size_; ++rank) cores.push_back(slots_[rank].cores);
  if (each_can_have_a_core(cores)) polling_time_ = kPollingTime;
}

void SharedBarrier::wait(uint32_t before, const Waiting& waiting) {
  if (!wait_awake(before)) wait_asleep(before, waiting);
  if (!is_completed(control_.epoch.load(std::memory_order_acquire), before)) throw_failure();
}

// Whether the barrier has ended, one way or the other.
bool SharedBarrier::wait_awake(uint32_t before) {
  return polling_.poll([&] { return control_.epoch.load(std::memory_order_acquire) != before; },
                       polling_time_);
}

void SharedBarrier::wait_asleep(uint32_t before, const Waiting& waiting) {
  control_.sleepers.fetch_add(1);
  SlowWait slow(slow_after_);
  while (control_.epoch.load() == before) {
    const auto left = waiting.until - Clock::now();
    if (left.count() <= 0) {
      // The missing tasks are looked up before the barrier is closed: they may come right after.
      const std::exception_ptr error = missing_error(waiting);
      if (close_barrier(before)) write_error(error);
      break;
    }
    futex_wait(control_.epoch, before, std::min<std::chrono::nanoseconds>(left, kSlice));
    if (control_.epoch.load() != before) break;
    fail_if_tasks_are_lost(waiting.call);
    if (slow.is_due()) slow.warn(waiting.call, task_name_(rank_), names_of(missing_tasks()));
  }
  control_.sleepers.fetch_sub(1);
}

// Whether this task has closed it.
bool SharedBarrier::close_barrier(uint32_t before) {
  return control_.epoch.compare_exchange_strong(before, before | kFailed);
}

void SharedBarrier::check_alive() {
  if ((control_.epoch.load(std::memory_order_acquire) & kFailed) != 0) throw_failure();
  fail_if_tasks_are_lost("a call on devices");
  if ((control_.epoch.load(std::memory_order_acquire) & kFailed) != 0) throw_failure();
}

void SharedBarrier::fail(const std::exception_ptr& error) noexcept {
  if ((control_.epoch.fetch_or(kFailed) & kFailed) == 0) write_error(error);
}

// Called by the one task that has set kFailed, and once.
void SharedBarrier::write_error(const std::exception_ptr& error) noexcept {
  try {
    const std::string bytes = internal::rpc::encode_error(error);
    const size_t size = std::min(bytes.size(), sizeof control_.error);
    std::memcpy(control_.error, bytes.data(), size);
    control_.error_bytes = static_cast<uint32_t>(size);
  } catch (const std::bad_alloc&) {  // then they learn that, and not why
  }
  control_.error_written.store(1);
  futex_wake_all(control_.error_written);
  futex_wake_all(control_.epoch);
}

void SharedBarrier::throw_failure() const {
  const auto end = Clock::now() + kMostWriting;
  while (control_.error_written.load() == 0) {
    const auto left = end - Clock::now();
    if (left.count() <= 0) {
      throw UnavailableError(
          "the group has failed, and the task that ended it was lost before it said why");
    }
    futex_wait(control_.error_written, 0, left);
  }
  const size_t size = std::min<size_t>(control_.error_bytes, sizeof control_.error);
  std::rethrow_exception(internal::rpc::decode_error({control_.error, size}));
}

void SharedBarrier::fail_if_tasks_are_lost(std::string_view call) {
  const std::vector<int> lost = lifelines_.lost(rank_);
  if (lost.empty()) return;
  const bool left = std::all_of(lost.begin(), lost.end(),
                                [&](int rank) { return slots_[rank].left.load() != 0; });
  const std::string text =
      str(names_of(lost), left ? " has left the group" : " was lost", ", while ", task_name_(rank_),
          " waited in '", call, "'; form the group again");
  fail(internal::rpc::make_error(Code::kUnavailable, text, "",
                                 {.peer = task_name_(lost.front()), .phase = "collective"}));
}

std::vector<int> SharedBarrier::missing_tasks() const {
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (slots_[rank].barriers.load(std::memory_order_acquire) != barriers_) missing.push_back(rank);
  }
  if (missing.empty()) {  // one of them was stopped just as it completed the barrier
    for (int rank = 0; rank < size_; ++rank) {
      if (rank != rank_) missing.push_back(rank);
    }
  }
  return missing;
}

std::exception_ptr SharedBarrier::missing_error(const Waiting& waiting) const {
  const std::vector<int> missing = missing_tasks();
  return internal::rpc::make_error(
      Code::kDeadlineExceeded,
      str(task_name_(rank_), " waited in '", waiting.call, "' for ",
          std::chrono::duration_cast<milliseconds>(waiting.timeout).count(), " ms, and ",
          names_of(missing), " did not come", hint_of_other_groups()),
      "", {.peer = task_name_(missing.front()), .phase = "collective"});
}

std::string SharedBarrier::names_of(const std::vector<int>& ranks) const {
  std::string names;
  for (const int rank : ranks) names += (names.empty() ? "" : ", ") + task_name_(rank);
  return names;
}

}  // namespace cohort::collective::shared_memory
