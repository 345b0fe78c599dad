#include "cohort/distribute/strategies/local_replicas.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "cohort/collective/sync_group.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/cpu/blas_kernels.h"
#include "cohort/core/cpu/flush_denormals.h"
#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/cpu/openmp_patience.h"
#include "cohort/core/durations.h"
#include "cohort/core/error_context.h"
#include "cohort/core/forced_unwind.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/profiler/phase.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/program/task.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/core/threads/wait_point.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica_streams.h"
#include "cohort/distribute/core/step_output.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/step/recorded_steps.h"
#include "cohort/distribute/step/step_call.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/ops/generator_streams.h"
#include "cohort/ops/random.h"
#include "cohort/train/summary/recording.h"

namespace cohort::internal {

using collective::GroupBrokenError;
using collective::GroupView;
using collective::SyncGroup;
using distribute::ReplicaContext;
using distribute::RunOptions;

namespace {

constexpr std::chrono::milliseconds kDefaultTimeout = std::chrono::minutes(10);
constexpr std::chrono::milliseconds kMaxTimeout = std::chrono::hours(24 * 30);
// How long a thread polls before it sleeps: longer than a wake-up takes, so that replicas which
// finish together do not pay for one. Only where every replica has a core of its own.
constexpr auto kSpin = std::chrono::microseconds(100);

std::chrono::nanoseconds spin_for(int replicas, int cores) {
  return replicas <= cores ? kSpin : std::chrono::nanoseconds(0);
}

// Whether the calling code of a step records summaries: replica 0 does, and code that runs once for
// all replicas.
bool may_record_summaries() {
  const ContextFrame* frame = current_frame();
  if (frame == nullptr) return true;
  if (frame->replica != nullptr) return frame->replica->replica_id_in_sync_group() == 0;
  return frame->core->should_save_summary();
}

// A child that was forked inside a step has one thread: that which forked. Where it comes back from
// the step, and is not the program's own, there is nobody to tell and nothing left to do.
[[noreturn]] void end_child(const std::string& replica) {
  constexpr int kSoftware = 70;  // sysexits.h
  log(logging::Level::kError, "a child of this process, forked inside a step by ", replica,
      ", came back from its step function; it ends with status ", kSoftware,
      ". Let such a child call exec or _exit");
  ::_exit(kSoftware);
}

}  // namespace

random::RandomGenerator StrategyGenerators::of_stream(uint64_t stream) {
  const std::lock_guard lock(mutex_);
  const uint64_t epoch = seed_epoch();
  if (!seed_ || epoch_ != epoch) {
    epoch_ = epoch;
    seed_ = next_seed();
  }
  const auto [found, is_new] = entries_.try_emplace(std::pair(&Task::current(), stream),
                                                    Entry{make_stream(*seed_, stream), epoch});
  Entry& entry = found->second;
  if (std::exchange(entry.epoch, epoch) != epoch) {
    entry.generator.restore(make_stream(*seed_, stream).state());
  }
  return entry.generator;
}

void StrategyGenerators::agree_on_seed(collective::SyncGroup& group) {
  const std::lock_guard lock(mutex_);
  if (seed_) return;
  epoch_ = seed_epoch();
  seed_ = collective::all_tasks_values(group, next_seed(), "seed of the replicas")[0];
}

// The objects to which the threads refer, and which they keep alive.
struct LocalReplicas::Shared {
  Shared(int size, std::chrono::nanoseconds spin, Options options)
      : group(size, spin, std::move(options.communicator), options.order),
        all_generators(std::move(options.generators)),
        jobs(size),
        errors(size),
        output(size),
        ended(size) {
    if (group.view()->division != nullptr) all_generators->agree_on_seed(group);
    seed_generators();
  }
  int size() const { return static_cast<int>(jobs.size()); }
  std::chrono::nanoseconds spin() { return group.threads().spin(); }

  void seed_generators();
  void forget_caller();
  void run_one(int rank);
  void work(int rank, int num_threads, uint64_t seen);
  std::exception_ptr take_error(size_t rank);
  std::string name_of(size_t rank);

  const HomeProcess home;
  SyncGroup group;
  std::vector<random::RandomGenerator> generators;
  uint64_t seed_epoch = 0;  // of the generators; random::set_seed begins a new one
  std::shared_ptr<StrategyGenerators> all_generators;
  std::vector<c10::Device> devices;
  std::vector<std::thread> threads;

  // The step that each replica is to run; set before `epoch` goes up, taken by the replica, which
  // keeps it alive for as long as it runs.
  struct Job {
    std::shared_ptr<StrategyCore> core;
    std::shared_ptr<RunFrame> frame;
    std::shared_ptr<const GroupView> view;
    Creators creators;
    std::shared_ptr<RecordedSteps> recorded;  // nullptr: the step runs as it is
  };
  std::vector<Job> jobs;
  std::optional<at::ThreadLocalState> caller_state;
  const Task* caller_task = nullptr;
  RecordingStatePtr caller_recording;
  std::vector<std::exception_ptr> errors;
  StepOutput output;
  std::vector<uint8_t> ended;  // whether the thread of a replica was ended inside a step

  std::atomic<bool> running{false};
  alignas(64) std::atomic<uint64_t> epoch{0};
  std::atomic<bool> shutdown{false};
  alignas(64) std::atomic<int> unfinished{0};
  WaitPoint start;
  WaitPoint end;
};

// One seed whatever the number of replicas: what is seeded later must not depend on it.
void LocalReplicas::Shared::seed_generators() {
  seed_epoch = internal::seed_epoch();
  generators.clear();
  for (int i = 0; i < size(); ++i) {
    const auto replica = static_cast<uint64_t>(group.view()->first_replica() + i);
    generators.push_back(
        all_generators->of_stream(first_stream_of(task_of_streams(group)) + replica));
  }
}

// Lets go of what the caller lent to the step, such as the writer of its summaries. Replicas that
// were given up may still be using it.
void LocalReplicas::Shared::forget_caller() {
  if (unfinished.load() != 0) return;
  caller_state.reset();
  caller_task = nullptr;
  caller_recording = nullptr;
}

// Runs the current step as replica `rank` on the calling thread; errors go to errors[rank].
COHORT_CATCHES_FORCED_UNWIND void LocalReplicas::Shared::run_one(int rank) {
  const Job job = std::exchange(jobs[rank], {});
  try {
    ReplicaContext context(*job.core, rank, job.view, &generators[0], &output);
    ContextGuard in_replica(*job.core, &context, job.creators);
    ScopedGenerator generator(generators[rank]);
    const ScopedRecordingGate recording(may_record_summaries);
    const c10::OptionalDeviceGuard device(devices[rank].is_cpu() ? c10::optional<c10::Device>()
                                                                 : devices[rank]);
    const ScopedDeviceOfNewTensors new_tensors(devices[rank]);
    at::NoGradGuard no_grad;
    const ScopedFlushDenormals flush_denormals;
    group.threads().enter(rank);
    {
      const ScopedPhase phase(profiler::Phase::kCompute);
      if (job.recorded != nullptr) {
        job.recorded->call(*job.frame, context, devices[rank]);
      } else {
        job.frame->call(context, static_cast<size_t>(rank));
      }
    }
    group.threads().leave(rank);
  } catch (const GroupBrokenError&) {
    group.threads().fail(rank);
  } catch (abi::__forced_unwind&) {  // nothing can keep the thread
    errors[rank] = std::make_exception_ptr(FailedPreconditionError(
        "its thread was ended inside the step, by pthread_exit or pthread_cancel; return from the "
        "step function, or throw"));
    ended[rank] = 1;
    group.threads().fail(rank);
    throw;
  } catch (...) {
    errors[rank] = std::current_exception();
    group.threads().fail(rank);
  }
}

// The life of the thread of replica `rank`.
void LocalReplicas::Shared::work(int rank, int num_threads, uint64_t seen) {
  set_thread_name(str("replica_", rank));
  set_intra_op_threads(num_threads);
  while (true) {
    start.wait([&] { return epoch.load() != seen || shutdown.load(); }, spin(),
               WaitPoint::kForever);
    if (epoch.load() == seen) return;
    ++seen;
    struct Finish {  // also where the thread is ended
      Shared& shared;
      ~Finish() {
        if (!shared.home.is_here()) end_child(shared.name_of(rank));
        if (shared.unfinished.fetch_sub(1) == 1) shared.end.notify();
      }
      size_t rank;
    } finish{*this, static_cast<size_t>(rank)};
    at::ThreadLocalStateGuard as_caller(*caller_state);
    const ScopedTask for_callers_task(*caller_task);
    const ScopedRecordingState with_callers_writer(caller_recording);
    run_one(rank);
  }
}

std::string LocalReplicas::Shared::name_of(size_t rank) {
  return str("replica ", group.view()->first_replica() + static_cast<int>(rank));
}

// The error that `run` throws for a replica. The text of its own error names the replica; that of
// an error that it shares with others does not.
std::exception_ptr LocalReplicas::Shared::take_error(size_t rank) {
  const std::exception_ptr error = errors[rank];
  const bool shared =
      error == group.threads().error() || std::count(errors.begin(), errors.end(), error) > 1;
  std::fill(errors.begin(), errors.end(), nullptr);
  return error_of_step(error, shared ? "" : name_of(rank));
}

LocalReplicas::LocalReplicas(Options options) : devices_(std::move(options.devices)) {
  const int cores = options.cores > 0 ? options.cores : num_usable_cores();
  threads_per_replica_ = options.threads_per_replica > 0 ? options.threads_per_replica
                                                         : std::max(1, cores / std::max(1, size()));
  take_turns_ = options.threads_per_replica > 0 && cores <= options.threads_per_replica;
  warn_of_slow_blas();
  for (const std::string& device : devices_) torch_devices_.push_back(torch_device(device));
  shared_ = std::make_shared<Shared>(size(), spin_for(size(), cores), std::move(options));
  shared_->devices = torch_devices_;
  shared_->threads.resize(static_cast<size_t>(size() - 1));
  try {
    start_missing_threads();
  } catch (const ResourceExhaustedError&) {
    end_threads();
    throw;
  }
}

void LocalReplicas::start_missing_threads() {
  for (int rank = 1; rank < size(); ++rank) {
    std::thread& thread = shared_->threads[rank - 1];
    if (thread.joinable()) continue;
    const auto work = [shared = shared_, rank, count = threads_per_replica_,
                       seen = shared_->epoch.load()] { shared->work(rank, count, seen); };
    thread = start_thread(str("for replica ", rank), work);
  }
}

std::shared_ptr<collective::SyncGroup> LocalReplicas::group_pointer() const {
  return {shared_, &shared_->group};
}

LocalReplicas::~LocalReplicas() {
  // A child of fork has no threads to join. The objects to which they refer stay.
  if (home_.is_here()) end_threads();
}

void LocalReplicas::end_threads() {
  shared_->shutdown = true;
  shared_->start.notify();
  const bool all_idle = shared_->unfinished.load() == 0;
  for (std::thread& thread : shared_->threads) {
    if (!thread.joinable()) continue;
    // A replica's own thread comes here where it drops the last handle of the strategy.
    if (all_idle && thread.get_id() != std::this_thread::get_id()) {
      thread.join();
    } else {
      thread.detach();
    }
  }
}

void LocalReplicas::check_usable(const StrategyCore& core) const {
  for (const ContextFrame* frame = current_frame(); frame != nullptr; frame = frame->parent) {
    if (frame->replica == nullptr || frame->core->is_default()) continue;
    throw FailedPreconditionError(
        str("strategy.run was called inside a step (replica ",
            frame->replica->replica_id_in_sync_group(),
            "); call the function directly, or use merge_call for cross-replica code"));
  }
  require_no_other_scope(core, "run");
}

const std::vector<random::RandomGenerator>& LocalReplicas::generators() {
  if (shared_->seed_epoch != internal::seed_epoch()) shared_->seed_generators();
  return shared_->generators;
}

COHORT_CATCHES_FORCED_UNWIND
void LocalReplicas::run(StrategyCore& core, const std::shared_ptr<RunFrame>& frame,
                        const RunOptions& options) {
  home_.check("a strategy");
  check_usable(core);
  check_not_negative("RunOptions: timeout", options.timeout);
  if (shared_->running.exchange(true)) {
    throw FailedPreconditionError(str("strategy.run was called while another thread of ",
                                      Task::current().to_string(),
                                      " runs a step of the same strategy; run one step at a time"));
  }
  struct NotRunning {
    Shared& shared;
    ~NotRunning() {
      shared.output.end();
      shared.forget_caller();
      shared.group.end();
      shared.running = false;
    }
  } not_running{*shared_};
  if (const int inside = shared_->unfinished.load()) {
    throw FailedPreconditionError(str(inside, " of ", size(),
                                      " replicas are still inside a step that was given up: ",
                                      shared_->group.threads().members_inside(),
                                      "; the strategy can run again when they return"));
  }

  const std::chrono::nanoseconds timeout =
      options.timeout.count() > 0
          ? std::min<std::chrono::milliseconds>(options.timeout, kMaxTimeout)
          : kDefaultTimeout;
  generators();
  shared_->output.begin();
  shared_->group.begin({.timeout = timeout, .sequential = !options.concurrent || take_turns_});
  // For a single replica, too: libtorch's own count is that of physical cores, half of them in many
  // containers.
  const ScopedIntraOpThreads own_share(threads_per_replica_);
  if (threads_per_replica_ > 1) adapt_openmp_patience(size() * (threads_per_replica_ - 1));
  try {
    run_step(core, frame, options, timeout);
  } catch (abi::__forced_unwind&) {
    // No std::exception_ptr has it. Errors of other replicas may still be written.
    const std::exception_ptr own = shared_->errors[0];
    give_up(own ? error_of_step(own, shared_->name_of(0)) : thread_ended_error("a step"));
    throw;
  } catch (...) {
    give_up(std::current_exception());
    throw;
  }
}

// Other tasks may wait for this one in a collective call of the step.
void LocalReplicas::give_up(const std::exception_ptr& reason) {
  if (home_.is_here() && shared_->group.spans_tasks()) shared_->group.abort(reason);
}

COHORT_CATCHES_FORCED_UNWIND
void LocalReplicas::run_step(StrategyCore& core, const std::shared_ptr<RunFrame>& frame,
                             const RunOptions& options, std::chrono::nanoseconds timeout) {
  start_workers(core, frame);
  if (options.capture && can_record(core, options.capture->steps())) {
    shared_->jobs[0].recorded = options.capture->pointer();
  }
  try {
    shared_->run_one(0);
  } catch (abi::__forced_unwind&) {  // the others may use what is on this stack
    wait_for_workers(timeout);
    throw;
  }
  if (size() > 1 && !home_.is_here()) {  // forked inside the step
    if (shared_->errors[0]) std::rethrow_exception(shared_->take_error(0));
    home_.check("the step that this process was forked in");
  }
  count_step();
  if (!wait_for_workers(timeout)) throw_given_up(timeout);

  for (size_t rank = 0; rank < shared_->errors.size(); ++rank) {
    if (shared_->errors[rank]) std::rethrow_exception(shared_->take_error(rank));
  }
  if (const std::exception_ptr error = shared_->group.threads().error()) {
    std::rethrow_exception(error);
  }
}

// A graph holds the work of one device, and no meeting with others.
bool LocalReplicas::can_record(const StrategyCore& core, RecordedSteps& steps) const {
  if (core.steps_run_elsewhere()) {
    steps.refuse(str("the variables of a ", core.name(), " are not on the GPU"));
  } else if (shared_->group.spans_tasks()) {
    steps.refuse("replicas of several tasks run it together");
  } else if (size() > 1) {
    steps.refuse(str(size(), " replicas run it together"));
  }
  return steps.why_not().empty();
}

void LocalReplicas::start_workers(StrategyCore& core, const std::shared_ptr<RunFrame>& frame) {
  for (int rank = 1; rank < size(); ++rank) {
    if (std::exchange(shared_->ended[rank], 0) != 0) shared_->threads[rank - 1].join();
  }
  start_missing_threads();
  for (Shared::Job& job : shared_->jobs) {
    job = {core.shared_from_this(), frame, shared_->group.view(), current_creators(), nullptr};
  }
  for (std::exception_ptr& error : shared_->errors) error = nullptr;
  if (size() == 1) return;
  shared_->caller_state.emplace();
  shared_->caller_task = &Task::current();
  shared_->caller_recording = recording_state();
  shared_->unfinished = size() - 1;
  shared_->epoch.fetch_add(1);
  shared_->start.notify();
}

// Replicas for which the others waited in vain get the same time again to notice and return.
bool LocalReplicas::wait_for_workers(std::chrono::nanoseconds timeout) {
  const ScopedPhase phase(profiler::Phase::kWait);
  return shared_->end.wait([this] { return shared_->unfinished.load() == 0; }, shared_->spin(),
                           WaitPoint::Clock::now() + timeout);
}

void LocalReplicas::throw_given_up(std::chrono::nanoseconds timeout) const {
  std::string cause;
  const std::exception_ptr own = shared_->errors[0];  // the others' may still be written
  if (const std::exception_ptr first = own ? own : shared_->group.threads().error()) {
    try {
      std::rethrow_exception(error_of_step(first, own ? shared_->name_of(0) : ""));
    } catch (const std::exception& error) {
      cause = str("; what went wrong first: ", error.what());
    } catch (...) {
      cause = str("; ", own ? shared_->name_of(0) : "a replica",
                  " failed with an error of an unknown class");
    }
  }
  throw DeadlineExceededError(
      str(shared_->name_of(0), " ended its step ", std::chrono::duration<double>(timeout).count(),
          " s ago, but still running: ", shared_->group.threads().members_inside(),
          "; what the step refers to must stay alive until they return", cause));
}

}  // namespace cohort::internal
