#include "cohort/core/cpu/intra_op_parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>

#include "cohort/core/cpu/intra_op_team.h"
#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/host/core_contention.h"
#include "cohort/core/program/process.h"

namespace cohort::internal {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(_OPENMP)
constexpr bool kHasOpenMp = true;
#else
constexpr bool kHasOpenMp = false;  // at::parallel_for is a plain loop
#endif
// Cores count as contended if the caller waited for the other threads longer than this, and longer
// than its own part took.
constexpr std::chrono::milliseconds kLate{1};

void share_by_openmp(int64_t begin, int64_t end, int64_t grain, Clock::time_point start,
                     FunctionRef<void(int64_t, int64_t)> body) {
  Clock::time_point own_end = start;
  at::parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    body(first, last);
    if (at::get_thread_num() == 0) own_end = Clock::now();
  });
  const Clock::time_point now = Clock::now();
  if (now - own_end > std::max<Clock::duration>(kLate, own_end - start))
    core_contention().note(now);
}

}  // namespace

void intra_op_parallel_for(int64_t begin, int64_t end, int64_t grain,
                           FunctionRef<void(int64_t, int64_t)> body) {
  if (begin >= end) return;
  const int threads = end - begin > grain && !at::in_parallel_region() ? intra_op_threads() : 1;
  if (threads <= 1) return body(begin, end);
  static const HomeProcess home;
  if (!home.is_here()) return body(begin, end);
  const Clock::time_point now = Clock::now();
  if (!kHasOpenMp || core_contention().is_contended(now)) {
    share_by_team(threads, begin, end, grain, body);
  } else {
    share_by_openmp(begin, end, grain, now, body);
  }
}

}  // namespace cohort::internal
