#include "cohort/distribute/strategies/multi_worker_strategy.h"

#include <exception>
#include <utility>

#include "cohort/cluster/cluster_check.h"
#include "cohort/cluster/config_error.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/multi_worker.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/observe/monitoring.h"
#include "cohort/core/program/process.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal {
namespace {

using distribute::cluster_resolver::ClusterResolver;

// The end of a connection is noticed at once, that it was the end of its task a little later.
constexpr std::chrono::milliseconds kPatienceForTheName{500};

LocalStrategy::Config config_of(const MultiWorkerStrategy::Options& options) {
  return {.name = "MultiWorkerMirroredStrategy",
          .devices = options.devices,
          .shared_storage = options.shared_storage,
          .communicator = options.connection ? options.connection->communicator : nullptr,
          .communication_options = options.communication_options,
          .cores = options.connection ? options.connection->cores : 0,
          .threads_per_replica = options.threads_per_replica,
          .order = options.threads_per_replica > 0 ? collective::SyncGroup::Order::kOfTree
                                                   : collective::SyncGroup::Order::kOfRanks};
}

WorkerPlace place_in(const train::ClusterSpec& spec, const TaskId& self) {
  WorkerPlace place{.workers = {}, .self = self, .is_cluster = true};
  if (self.job == kEvaluator) {  // a cluster of its own
    place.workers = {self};
    return place;
  }
  worker_count(spec, self.job);  // refuses a ps
  for (const char* job : {kChief, kWorker}) {
    for (int i = 0; i < task_count(spec, job); ++i) place.workers.push_back({job, i});
  }
  place.rank = id_in_cluster(spec, self);
  return place;
}

// Gives the other workers the error that has ended this worker's program.
class PassOn final : public FailureListener {
 public:
  explicit PassOn(GroupConnection connection) : connection_(std::move(connection)) {}

  void on_failure(const std::exception_ptr& error) noexcept override {
    if (!home_.is_here()) return;  // what ends a child of fork is no failure of its parent
    connection_.communicator->abort(
        error != nullptr ? error
                         : std::make_exception_ptr(AbortedError(
                               "an exception has ended the program's use of its strategy")));
  }

 private:
  const HomeProcess home_;
  const GroupConnection connection_;  // lives as long as somebody may have something to pass on
};

std::shared_ptr<FailureListener> listen(const std::optional<GroupConnection>& connection) {
  if (!connection) return nullptr;
  auto listener = std::make_shared<PassOn>(*connection);
  add_failure_listener(listener);
  return listener;
}

}  // namespace

WorkerPlace worker_place(const ClusterResolver& resolver) {
  const CheckedCluster cluster = check_cluster(resolver, true);
  if (const auto rendezvous = resolver.rendezvous(); rendezvous && cluster.spec.empty()) {
    WorkerPlace place{.workers = {}, .self = {kWorker, rendezvous->rank}, .is_cluster = true};
    for (int i = 0; i < rendezvous->size; ++i) place.workers.push_back({kWorker, i});
    place.rank = rendezvous->rank;
    return place;
  }
  if (!cluster.self) return {.workers = {{kWorker, 0}}, .self = {kWorker, 0}};
  return place_in(cluster.spec, *cluster.self);
}

MultiWorkerStrategy::MultiWorkerStrategy(Options options)
    : LocalStrategy(config_of(options)),
      options_(std::move(options)),
      maker_(Task::current()),
      exceptions_(std::uncaught_exceptions()),
      pass_on_(listen(options_.connection)) {
  if (options_.connection) options_.connection->keys->remove_all();  // the tasks have made a call
  const auto& replicas_of = group().view()->replicas_of;
  set_gauge("distribution_strategy_num_workers_gauge", {std::string(name())},
            static_cast<int64_t>(replicas_of.size()));
}

MultiWorkerStrategy::~MultiWorkerStrategy() {
  if (options_.connection && home_.is_here()) close();
}

void MultiWorkerStrategy::close() noexcept {
  const ScopedTask as_maker(maker_);
  try {
    if (std::uncaught_exceptions() > exceptions_) {
      FailureFrame* const frame = FailureFrame::current();
      return frame != nullptr ? frame->leave(pass_on_) : pass_on_->on_failure(nullptr);
    }
    if (failure_ != nullptr) return pass_on_->on_failure(failure_);
    // Two tasks one of which goes on learn here what the other does.
    group().between().barrier(
        {.name = "the end of the strategy", .timeout = bounded_wait(options_.close_timeout)});
  } catch (const ResourceExhaustedError&) {
    pass_on_->on_failure(nullptr);
  } catch (const Error& error) {
    log_info(options_.place.self, " ends its strategy while others do not: ", error.what());
  } catch (...) {  // no memory for the words
  }
}

void MultiWorkerStrategy::run(const std::shared_ptr<RunFrame>& frame,
                              const distribute::RunOptions& options) {
  if (!options_.connection) return LocalStrategy::run(frame, options);
  failure_ = nullptr;
  const std::shared_ptr<GroupWatch> watch = options_.connection->watch;
  try {
    LocalStrategy::run(frame, options);
  } catch (const UnavailableError&) {
    // Whatever a backend has to say of the end of a connection, this says whose end it was.
    if (const std::exception_ptr loss = watch->loss(kPatienceForTheName)) {
      std::rethrow_exception(loss);
    }
    throw;
  }
}

distribute::Server* MultiWorkerStrategy::server() const {
  return options_.connection ? &options_.connection->server->server() : nullptr;
}

}  // namespace cohort::internal
