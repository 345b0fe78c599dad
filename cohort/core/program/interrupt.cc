#include "cohort/core/program/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace cohort::internal {
namespace {

std::atomic<bool> interrupt_requested{false};
std::mutex interrupt_mutex;
int interrupt_scopes = 0;
bool interrupt_installed = false;
struct sigaction interrupt_before;

void on_interrupt(int) {
  // Async-signal-safe calls only.
  interrupt_requested.store(true, std::memory_order_relaxed);
  constexpr char kText[] = "\ninterrupted: ending after this step; again to end now\n";
  const ssize_t written = ::write(STDERR_FILENO, kText, sizeof(kText) - 1);
  (void)written;
  ::signal(SIGINT, SIG_DFL);
}

}  // namespace

InterruptScope::InterruptScope() {
  const std::lock_guard lock(interrupt_mutex);
  if (interrupt_scopes++ > 0) return;
  interrupt_requested = false;
  ::sigaction(SIGINT, nullptr, &interrupt_before);
  const bool is_default =
      (interrupt_before.sa_flags & SA_SIGINFO) == 0 && interrupt_before.sa_handler == SIG_DFL;
  if (!is_default) return;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  interrupt_installed = true;
}

InterruptScope::~InterruptScope() {
  const std::lock_guard lock(interrupt_mutex);
  if (--interrupt_scopes > 0 || !interrupt_installed) return;
  ::sigaction(SIGINT, &interrupt_before, nullptr);
  interrupt_installed = false;
}

bool InterruptScope::requested() { return interrupt_requested.load(std::memory_order_relaxed); }

}  // namespace cohort::internal
