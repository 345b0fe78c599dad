#include "cohort/core/intra_op_parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>

#include "cohort/core/intra_op_team.h"
#include "cohort/core/intra_op_threads.h"
#include "cohort/core/process.h"

namespace cohort::internal {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(_OPENMP)
constexpr bool kHasOpenMp = true;
#else
constexpr bool kHasOpenMp = false;  // at::parallel_for is a plain loop
#endif
// A caller that has waited for the others longer than this, and longer than its own part took, is on
// a busy machine, and stays so for a while.
constexpr std::chrono::milliseconds kLate{1};
constexpr std::chrono::milliseconds kBusy{100};

// Whether the others were done in time.
bool share_by_openmp(int64_t begin, int64_t end, int64_t grain, Clock::time_point start,
                     FunctionRef<void(int64_t, int64_t)> body) {
  Clock::time_point own_end = start;
  at::parallel_for(begin, end, grain, [&](int64_t first, int64_t last) {
    body(first, last);
    if (at::get_thread_num() == 0) own_end = Clock::now();
  });
  const auto waited = Clock::now() - own_end;
  return waited <= std::max<Clock::duration>(kLate, own_end - start);
}

}  // namespace

void intra_op_parallel_for(int64_t begin, int64_t end, int64_t grain,
                           FunctionRef<void(int64_t, int64_t)> body) {
  if (begin >= end) return;
  const int threads = end - begin > grain && !at::in_parallel_region() ? intra_op_threads() : 1;
  if (threads <= 1) return body(begin, end);
  static const HomeProcess home;
  if (!home.is_here()) return body(begin, end);
  thread_local Clock::time_point busy_until{};
  const Clock::time_point now = Clock::now();
  if (!kHasOpenMp || now < busy_until) {
    share_by_team(threads, begin, end, grain, body);
  } else if (!share_by_openmp(begin, end, grain, now, body)) {
    busy_until = Clock::now() + kBusy;
  }
}

}  // namespace cohort::internal
