// How a ClusterCoordinator works, and what it says of its workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "cohort/train/summary/summary_writer.h"

namespace cohort::distribute::coordinator {

// Chosen once for each strategy: see ClusterCoordinator.
struct ClusterCoordinatorOptions {
  // How many closures are on a worker at a time: they run one after another, and the wire's delay
  // hides behind them. Gradients of a window's last closure are that much older.
  int window = 2;
  // schedule() blocks while so many closures wait; 0: no limit.
  int64_t max_queued = int64_t{256} << 10;
  // How long one closure may take, with those before it on its worker. One that takes longer is a
  // DeadlineExceededError and changes nothing any more, though its worker may run it still: until
  // it has ended, others run elsewhere.
  std::chrono::milliseconds closure_timeout = std::chrono::hours(1);
  // How long a lost worker may take to come back before it is given up. When all are, so is the
  // training.
  std::chrono::milliseconds max_recovery = std::chrono::hours(1);
  // A worker that is lost again before it has run a closure is called back after this pause, then
  // after twice the pause, and so on; after so many losses in a row it is given up.
  std::chrono::milliseconds worker_pause = std::chrono::seconds(1);
  int max_worker_losses = 10;
  // A closure that was lost with its worker, or failed by a ps task, so many times fails: perhaps
  // it is what ends them. So does what makes a worker's input, which then is the error of the
  // closures that use it.
  int max_closure_attempts = 10;
  // A ps task whose connection broke is lost if it does not answer over a new one within this time.
  // So often a minute it may fail for a moment; closures that it fails are run again.
  std::chrono::milliseconds ps_grace{300};
  int tolerated_ps_failures = 3;
  // How long the end of the last handle waits for functions that workers of this process still run,
  // and for inputs that they have: the program's own objects, to which these may refer, may end
  // next. What takes longer is named in the log.
  std::chrono::milliseconds end_timeout = std::chrono::minutes(1);
  // While a call waits and no closure ends, the log says so each time that this has passed: what is
  // under way, on which worker, for how long.
  std::chrono::milliseconds report_after = std::chrono::seconds(30);
  // Records, every so often and at the end, what `cohort cluster status` shows of the coordinator
  // and the ps tasks: scalars "coordinator/closures queued", "ps 0/variable bytes" and so on, whose
  // step is the number of closures that have ended. Missing: nothing is recorded.
  std::optional<summary::SummaryWriter> summary_writer = std::nullopt;
  std::chrono::milliseconds summary_every = std::chrono::seconds(10);

  bool operator==(const ClusterCoordinatorOptions&) const = default;
};

// How a worker does.
struct WorkerState {
  bool is_alive = true;
  int in_flight = 0;
  int64_t done = 0;
  int64_t retried = 0;  // closures that went to another worker because this one was lost
};

}  // namespace cohort::distribute::coordinator
