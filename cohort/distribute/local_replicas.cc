#include "cohort/distribute/local_replicas.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>

#include <optional>
#include <thread>

#include "cohort/collective/thread_group.h"
#include "cohort/core/device.h"
#include "cohort/core/intra_op_threads.h"
#include "cohort/core/thread_pool.h"
#include "cohort/core/wait_point.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

using collective::GroupBrokenError;
using collective::ThreadGroup;
using distribute::ReplicaContext;
using distribute::RunOptions;

namespace {

constexpr auto kDefaultTimeout = std::chrono::minutes(10);
// How long a thread polls before it sleeps: longer than a wake-up takes, so that replicas which
// finish together do not pay for one. Only where every replica has a core of its own.
constexpr auto kSpin = std::chrono::microseconds(100);

std::chrono::nanoseconds spin_for(int replicas) {
  return replicas <= num_usable_cores() ? kSpin : std::chrono::nanoseconds(0);
}

}  // namespace

// What the threads refer to; they keep it alive.
struct LocalReplicas::Shared {
  Shared(int size, std::chrono::nanoseconds spin) : group(size, spin), errors(size) {
    // One seed whatever the number of replicas: what is seeded later must not depend on it.
    const uint64_t seed = next_seed();
    for (int i = 0; i < size; ++i) {
      generators.push_back(random::Generator::from_seed(seed, static_cast<uint64_t>(i)));
    }
  }

  void run_one(int rank);
  void work(int rank, int num_threads);

  ThreadGroup group;
  std::vector<random::Generator> generators;
  std::vector<c10::Device> devices;
  std::vector<std::thread> threads;

  // The step that runs; set before `epoch` goes up.
  std::shared_ptr<StrategyCore> core;
  std::shared_ptr<RunFrame> frame;
  std::optional<at::ThreadLocalState> caller_state;
  std::vector<std::exception_ptr> errors;

  std::atomic<bool> running{false};
  alignas(64) std::atomic<uint64_t> epoch{0};
  std::atomic<bool> shutdown{false};
  alignas(64) std::atomic<int> unfinished{0};
  WaitPoint start;
  WaitPoint end;
};

// Runs the current step as replica `rank` on the calling thread; errors go to errors[rank].
void LocalReplicas::Shared::run_one(int rank) {
  // Held here too: a step that was given up may outlast the strategy.
  const std::shared_ptr<RunFrame> step = frame;
  const std::shared_ptr<StrategyCore> strategy = core;
  try {
    ReplicaContext context(*strategy, rank, group.size() > 1 ? &group : nullptr);
    ContextGuard in_replica(*strategy, &context);
    ScopedGenerator generator(generators[rank]);
    const c10::OptionalDeviceGuard device(
        devices[rank].is_cpu() ? c10::optional<c10::Device>() : devices[rank]);
    at::NoGradGuard no_grad;
    group.enter(rank);
    step->call(context, static_cast<size_t>(rank));
    group.leave(rank);
  } catch (const GroupBrokenError&) {
    group.fail(rank);
  } catch (...) {
    errors[rank] = std::current_exception();
    group.fail(rank);
  }
}

// The life of the thread of replica `rank`.
void LocalReplicas::Shared::work(int rank, int num_threads) {
  set_thread_name(str("replica_", rank));
  set_intra_op_threads(num_threads);
  uint64_t seen = 0;
  while (true) {
    start.wait([&] { return epoch.load() != seen || shutdown.load(); }, group.spin(),
               WaitPoint::kForever);
    if (epoch.load() == seen) return;
    ++seen;
    {
      at::ThreadLocalStateGuard as_caller(*caller_state);
      run_one(rank);
    }
    if (unfinished.fetch_sub(1) == 1) end.notify();
  }
}

LocalReplicas::LocalReplicas(std::vector<std::string> devices)
    : devices_(std::move(devices)),
      threads_per_replica_(std::max(1, num_usable_cores() / std::max(1, size()))) {
  for (const std::string& device : devices_) torch_devices_.push_back(torch_device(device));
  shared_ = std::make_shared<Shared>(size(), spin_for(size()));
  shared_->devices = torch_devices_;
  for (int rank = 1; rank < size(); ++rank) {
    shared_->threads.emplace_back(
        [shared = shared_, rank, count = threads_per_replica_] { shared->work(rank, count); });
  }
}

LocalReplicas::~LocalReplicas() {
  shared_->shutdown = true;
  shared_->start.notify();
  const bool all_idle = shared_->unfinished.load() == 0;
  for (std::thread& thread : shared_->threads) {
    // A replica's own thread comes here where it drops the last handle of the strategy.
    if (all_idle && thread.get_id() != std::this_thread::get_id()) {
      thread.join();
    } else {
      thread.detach();
    }
  }
}

void LocalReplicas::check_usable() const {
  const ContextFrame* frame = current_frame();
  if (frame != nullptr && frame->replica != nullptr && !frame->core->is_default()) {
    throw FailedPreconditionError(
        str("strategy.run was called inside a step (replica ",
            frame->replica->replica_id_in_sync_group(),
            "); call the function directly, or use merge_call for cross-replica code"));
  }
}

void LocalReplicas::run(StrategyCore& core, const std::shared_ptr<RunFrame>& frame,
                        const RunOptions& options) {
  check_usable();
  if (shared_->running.exchange(true)) {
    throw FailedPreconditionError(
        "strategy.run was called while another thread runs a step of the same strategy; run one "
        "step at a time");
  }
  struct NotRunning {
    std::atomic<bool>& running;
    ~NotRunning() { running = false; }
  } not_running{shared_->running};
  if (const int inside = shared_->unfinished.load()) {
    throw FailedPreconditionError(
        str(inside, " of ", size(), " replicas are still inside a step that was given up: ",
            shared_->group.members_inside(), "; the strategy can run again when they return"));
  }

  const auto timeout = options.timeout.count() > 0 ? std::chrono::nanoseconds(options.timeout)
                                                   : std::chrono::nanoseconds(kDefaultTimeout);
  shared_->group.begin({.timeout = timeout, .sequential = !options.concurrent});
  std::optional<ScopedIntraOpThreads> own_share;
  if (size() > 1) own_share.emplace(threads_per_replica_);
  start_workers(core, frame);
  shared_->run_one(0);
  wait_for_workers(timeout);

  shared_->frame.reset();
  shared_->core.reset();
  for (std::exception_ptr& error : shared_->errors) {
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }
  if (const std::exception_ptr error = shared_->group.error()) std::rethrow_exception(error);
}

void LocalReplicas::start_workers(StrategyCore& core, const std::shared_ptr<RunFrame>& frame) {
  shared_->core = core.shared_from_this();
  shared_->frame = frame;
  for (std::exception_ptr& error : shared_->errors) error = nullptr;
  if (size() == 1) return;
  shared_->caller_state.emplace();
  shared_->unfinished = size() - 1;
  shared_->epoch.fetch_add(1);
  shared_->start.notify();
}

// Replicas that the others waited for in vain get as long again to notice and return.
void LocalReplicas::wait_for_workers(std::chrono::nanoseconds timeout) {
  const auto deadline = WaitPoint::Clock::now() + timeout;
  if (shared_->end.wait([this] { return shared_->unfinished.load() == 0; }, shared_->group.spin(),
                        deadline)) {
    return;
  }
  throw DeadlineExceededError(
      str("replica 0 ended its step ", std::chrono::duration<double>(timeout).count(),
          " s ago, but still running: ", shared_->group.members_inside(),
          "; what the step refers to must stay alive until they return"));
}

}  // namespace cohort::internal
