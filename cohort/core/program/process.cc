#include "cohort/core/program/process.h"

#include <pthread.h>

#include <atomic>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

std::atomic<uint64_t> epoch{0};

}  // namespace

uint64_t process_epoch() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { epoch.fetch_add(1, std::memory_order_relaxed); });
  return epoch.load(std::memory_order_relaxed);
}

void HomeProcess::throw_forked(const char* what) {
  throw FailedPreconditionError(
      str(what,
          " was made before this process was forked, and its threads are in the parent "
          "only; make it anew in the child, or let the child call exec or exit"));
}

}  // namespace cohort::internal
