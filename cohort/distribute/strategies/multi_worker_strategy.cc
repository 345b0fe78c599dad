#include "cohort/distribute/strategies/multi_worker_strategy.h"

#include <exception>
#include <functional>
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

// What a task's connection is now; nothing where it has none.
using ConnectionNow = std::function<std::optional<GroupConnection>()>;
ConnectionNow connection_now(const MultiWorkerStrategy::Options& options) {
  if (options.former == nullptr) return [connection = options.connection] { return connection; };
  return [former = options.former]() -> std::optional<GroupConnection> {
    return former->group().connection;
  };
}

LocalStrategy::Config config_of(const MultiWorkerStrategy::Options& options) {
  const std::optional<GroupConnection> connection = connection_now(options)();
  return {.name = "MultiWorkerMirroredStrategy",
          .devices = options.devices,
          .shared_storage = options.shared_storage,
          .communicator = connection ? connection->communicator : nullptr,
          .communication_options = options.communication_options,
          .cores = connection ? connection->cores : 0,
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
  explicit PassOn(ConnectionNow connection) : connection_(std::move(connection)) {}

  void on_failure(const std::exception_ptr& error) noexcept override {
    if (!home_.is_here()) return;  // what ends a child of fork is no failure of its parent
    const std::optional<GroupConnection> connection = connection_();
    if (connection->communicator == nullptr) return;
    connection->communicator->abort(
        error != nullptr ? error
                         : std::make_exception_ptr(AbortedError(
                               "an exception has ended the program's use of its strategy")));
  }

 private:
  const HomeProcess home_;
  const ConnectionNow connection_;  // lives as long as somebody may have something to pass on
};

std::shared_ptr<FailureListener> listen(const MultiWorkerStrategy::Options& options) {
  if (!options.connection && options.former == nullptr) return nullptr;
  auto listener = std::make_shared<PassOn>(connection_now(options));
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
    : ElasticStrategy(config_of(options), options.former, options.is_coming),
      options_(std::move(options)),
      maker_(Task::current()),
      exceptions_(std::uncaught_exceptions()),
      pass_on_(listen(options_)) {
  if (options_.connection) options_.connection->keys->remove_all();  // the tasks have made a call
  const auto& replicas_of = group().view()->replicas_of;
  set_gauge("distribution_strategy_num_workers_gauge", {std::string(name())},
            static_cast<int64_t>(replicas_of.size()));
}

MultiWorkerStrategy::~MultiWorkerStrategy() {
  if (pass_on_ != nullptr && home_.is_here()) close();
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
    const auto meet = [&] {
      group().between().barrier(
          {.name = "the end of the strategy", .timeout = bounded_wait(options_.close_timeout)});
      return std::string();
    };
    repeatable(meet);
  } catch (const ResourceExhaustedError&) {
    pass_on_->on_failure(nullptr);
  } catch (const Error& error) {
    log_info(options_.place.self, " ends its strategy while others do not: ", error.what());
  } catch (...) {  // no memory for the words
  }
}

void MultiWorkerStrategy::run(const std::shared_ptr<RunFrame>& frame,
                              const distribute::RunOptions& options) {
  failure_ = nullptr;
  if (!options_.connection) return ElasticStrategy::run(frame, options);
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

int MultiWorkerStrategy::num_workers() const {
  return options_.former == nullptr ? static_cast<int>(options_.place.workers.size())
                                    : static_cast<int>(options_.former->group().workers.size());
}

distribute::Server* MultiWorkerStrategy::server() const {
  if (options_.former != nullptr) return &options_.former->group().connection.server->server();
  return options_.connection ? &options_.connection->server->server() : nullptr;
}

}  // namespace cohort::internal
