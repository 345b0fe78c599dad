#include "cohort/core/cpu/openmp_patience.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "cohort/core/host/core_contention.h"
#include "cohort/core/host/preemption_watch.h"
#include "cohort/core/program/process.h"
#include "cohort/core/threads/thread_pool.h"

namespace cohort::internal {
namespace {

#if defined(_OPENMP)

// A thread that starts OpenMP threads of its own, all of which sleep until it ends.
class Sleepers {
 public:
  // Errors: std::system_error (no thread to be had).
  explicit Sleepers(int count) {
    std::thread([over = over_, count] {
      set_thread_name("openmp-sleepers");
      std::atomic<int> begun{0};
#pragma omp parallel num_threads(count + 1)
      begun.fetch_add(1);
      over->wait();
    }).detach();
  }
  ~Sleepers() { over_->count_down(); }
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;

 private:
  const std::shared_ptr<std::latch> over_ = std::make_shared<std::latch>(1);
};

// Never destroyed: at the end of the process its threads go with it.
struct Patience {
  const HomeProcess home;
  std::atomic<bool> is_short{false};
  std::mutex mutex;
  std::unique_ptr<Sleepers> sleepers;  // guarded by mutex

  void make_short(bool wanted, int pool_threads) {
    const std::lock_guard lock(mutex);
    if (is_short == wanted) return;
    try {
      // The program's first thread counts as well.
      const int missing = omp_get_num_procs() - pool_threads;
      sleepers = wanted ? std::make_unique<Sleepers>(std::max(1, missing)) : nullptr;
    } catch (const std::system_error&) {  // then they spin
      return;
    }
    is_short = wanted;
  }
};
Patience& patience() {
  static auto* const only = new Patience;
  return *only;
}

#endif

}  // namespace

#if defined(_OPENMP)

void adapt_openmp_patience(int pool_threads) {
  if (!patience().home.is_here()) return;
  const CoreContention::Time now = CoreContention::Time::clock::now();
  preemption_watch().look(now);
  const bool contended = core_contention().is_contended(now);
  if (contended != patience().is_short) patience().make_short(contended, pool_threads);
}

bool openmp_sleeps_soon() { return patience().is_short; }

#else

void adapt_openmp_patience(int) {}
bool openmp_sleeps_soon() { return false; }

#endif

}  // namespace cohort::internal
