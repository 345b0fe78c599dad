#include "cohort/core/cpu/openmp_patience.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/host/core_contention.h"
#include "cohort/core/host/spin_pause.h"

namespace cohort::internal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;
using std::chrono::seconds;

nanoseconds time_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// Processor time that OpenMP's second thread takes for an operation of nothing, until it sleeps.
nanoseconds time_of_helper() {
  clockid_t clock{};
  std::atomic<bool> known{false};
  const auto find_clock = [&](int64_t, int64_t) {
    if (at::get_thread_num() != 1) return;
    known = ::pthread_getcpuclockid(::pthread_self(), &clock) == 0;
  };
  at::parallel_for(0, 2, 1, find_clock);
  EXPECT_TRUE(known);
  const nanoseconds before = time_of(clock);
  at::parallel_for(0, 2, 1, [](int64_t, int64_t) {});
  // It sleeps where it uses no more time.
  nanoseconds last = before;
  for (auto still = Clock::now() + std::chrono::milliseconds(20); Clock::now() < still;) {
    std::this_thread::yield();
    if (time_of(clock) == last) continue;
    last = time_of(clock);
    still = Clock::now() + std::chrono::milliseconds(20);
  }
  return last - before;
}

// A thread of OpenMP's looks 300,000 times before it sleeps, unless something changes that.
nanoseconds time_of_looks(int count) {
  const nanoseconds before = time_of(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < count; ++i) spin_pause();
  return time_of(CLOCK_THREAD_CPUTIME_ID) - before;
}

TEST(OpenMpPatience, ThreadsSleepSoonWhileCoresAreContended) {
  const ScopedIntraOpThreads two(2);
  // Threads that make OpenMP impatient start meanwhile.
  bool soon = false;
  for (const auto end = Clock::now() + seconds(60); !soon && Clock::now() < end;) {
    core_contention().note(Clock::now());
    adapt_openmp_patience(1);
    EXPECT_TRUE(openmp_sleeps_soon());
    soon = time_of_helper() < time_of_looks(30'000);
  }
  EXPECT_TRUE(soon);
}

}  // namespace
}  // namespace cohort::internal
