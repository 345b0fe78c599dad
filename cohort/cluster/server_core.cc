#include "cohort/cluster/server_core.h"

#include <poll.h>

#include <csignal>
#include <random>
#include <utility>

#include "cohort/cluster/address.h"
#include "cohort/cluster/cluster_check.h"
#include "cohort/cluster/cluster_roles.h"
#include "cohort/cluster/control_service.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/membership/limits.h"
#include "cohort/cluster/membership/prometheus_text.h"
#include "cohort/cluster/membership/settings.h"
#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/rpc/refused_connections.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/host/event_fd.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/observe/monitoring.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal {
namespace {

using distribute::ServerOptions;
using distribute::cluster_resolver::ClusterResolver;

constexpr int kSignalExit = 128;
// The most calls under way at once in the largest cluster: each task keeps two of them open, and
// there is room for as many again.
constexpr size_t kMostCalls = 4 * membership::kMostTasks;

uint64_t new_incarnation() {
  std::random_device device;
  const uint64_t high = device();
  const uint64_t number = high << 32 | device();
  return number == 0 ? 1 : number;  // 0 stands for none
}

distribute::Credentials credentials_of(const ServerOptions& options) {
  return options.credentials.empty() ? distribute::Credentials::from_environment()
                                     : options.credentials;
}

void check_durations(const ServerOptions& options) {
  check_not_negative("ServerOptions: keepalive_time", options.keepalive_time);
  check_not_negative("ServerOptions: keepalive_timeout", options.keepalive_timeout);
  check_not_negative("ServerOptions: start_timeout", options.start_timeout);
  check_not_negative("ServerOptions: heartbeat_interval", options.heartbeat_interval);
  check_not_negative("ServerOptions: heartbeat_timeout", options.heartbeat_timeout);
  check_not_negative("ServerOptions: reconnect_grace", options.reconnect_grace);
  check_not_negative("ServerOptions: ps_lease", options.ps_lease);
  if (options.elastic) {
    check_not_negative("ElasticClusterOptions: start_wait", options.elastic->start_wait);
  }
}

rpc::TransportSettings settings_of(const ServerOptions& options) {
  rpc::TransportSettings settings;
  settings.keepalive_time = bounded_wait(options.keepalive_time);
  settings.keepalive_timeout = bounded_wait(options.keepalive_timeout);
  return settings;
}

// The address at which a task with a rendezvous listens: the first task at the rendezvous itself,
// the others wherever there is room. If the rendezvous is on another host, tasks there must be able
// to reach this one, too.
Address rendezvous_listener(const ServerPlace& place, const ServerOptions& options) {
  Address address = parse_address(place.rendezvous->address);
  if (place.rendezvous->rank == 0) return address;
  address.port = 0;
  if (!is_loopback(address) && options.bind_address.empty()) {
    address.host = rpc::local_host_towards(place.rendezvous->address);
  }
  return address;
}

rpc::ListenerOptions listener_of(const ServerPlace& place, const ServerOptions& options) {
  Address address = place.rendezvous && place.spec.empty()
                        ? rendezvous_listener(place, options)
                        : parse_address(place.spec.task_address(place.task.job, place.task.index));
  if (address.is_unix()) {
    throw InvalidArgumentError(str(place.task, " cannot listen at ", to_string(address),
                                   ": a server needs a host and a port"));
  }
  if (!options.bind_address.empty()) address.host = options.bind_address;
  return {.host = address.host, .port = address.port, .listen_fd = options.listen_fd};
}

void check_elastic(const train::ClusterSpec& spec,
                   const distribute::ElasticClusterOptions& elastic) {
  if (spec.has_job(kPs)) {
    throw InvalidArgumentError(
        str("ServerOptions: an elastic cluster has no ps tasks; the cluster spec is ", spec));
  }
  if (elastic.min_tasks < 1) {
    throw InvalidArgumentError(str("ElasticClusterOptions: min_tasks is ", elastic.min_tasks,
                                   "; a group has at least one task"));
  }
}

// Before a socket is opened. Errors: InvalidArgument.
void check_options(const train::ClusterSpec& spec, const ServerOptions& options) {
  membership::check(heartbeat_of(spec, options));
  if (options.elastic) check_elastic(spec, *options.elastic);
  if (options.metrics_port < 0 || options.metrics_port > 65535) {
    throw InvalidArgumentError(
        str("metrics_port is ", options.metrics_port, "; ports are 1 to 65535, 0 is for none"));
  }
}

// An unset descriptor where no port is given. Errors: those of listen_at.
UniqueFd metrics_listener(const ServerOptions& options) {
  if (options.metrics_port == 0) return UniqueFd();
  return rpc::listen_at(options.metrics_host, options.metrics_port);
}

std::vector<monitoring::Sample> refused_connections() {
  std::vector<monitoring::Sample> samples = monitoring::samples();
  std::erase_if(samples,
                [](const auto& sample) { return sample.name != rpc::kRefusedConnections; });
  return samples;
}

// The address to which others connect, for a task that listens at `listener`.
std::string advertised_address_of(const ServerPlace& place, const std::string& listener) {
  if (!place.spec.empty()) return place.spec.task_address(place.task.job, place.task.index);
  // The others know it already, and have channels to it.
  if (place.rendezvous->rank == 0) return place.rendezvous->address;
  Address address = parse_address(listener);
  if (!is_unspecified(address)) return listener;
  const Address meeting = parse_address(place.rendezvous->address);
  address.host =
      is_loopback(meeting) ? meeting.host : rpc::local_host_towards(place.rendezvous->address);
  return to_string(address);
}

train::ClusterSpec spec_of_rendezvous(const distribute::cluster_resolver::Rendezvous& rendezvous) {
  return train::ClusterSpec({{kWorker, {rendezvous.address}}});
}

}  // namespace

ServerPlace place_of(const train::ClusterSpec& spec, const ServerOptions& options) {
  const TaskId task{options.job_name, options.task_index};
  check_cluster(spec, task);
  return {.task = task, .spec = spec, .rendezvous = {}};
}

ServerPlace place_of(const ClusterResolver& resolver, const ServerOptions& options) {
  CheckedCluster cluster = check_cluster(resolver);
  ServerPlace place{
      .task = {}, .spec = std::move(cluster.spec), .rendezvous = resolver.rendezvous()};
  if (!options.job_name.empty()) {
    place.task = {options.job_name, options.task_index};
    if (!place.spec.empty()) check_cluster(place.spec, place.task, {.source = resolver.source()});
  } else if (cluster.self) {
    place.task = *cluster.self;
  } else if (place.rendezvous) {
    place.task = {kWorker, place.rendezvous->rank};
  } else {
    throw InvalidArgumentError(str(resolver.source(),
                                   ": does not say which task this is; a Server needs to know. ",
                                   "Give job_name and task_index"));
  }
  return place;
}

ServerCore::ServerCore(ServerPlace place, const ServerOptions& options)
    : task_(place.task),
      rendezvous_(place.rendezvous),
      stop_on_signals_(options.stop_on_signals),
      security_(security::Security::load(credentials_of(options), place.task)),
      identity_(std::make_shared<rpc::Identity>(place.task, new_incarnation())),
      spec_(place.spec),
      stop_event_(make_event_fd()),
      channels_(identity_, security_, settings_of(options)),
      dispatcher_({.self = place.task,
                   .role_of = [this](const TaskId& task) { return role_of(task); },
                   .max_calls = kMostCalls}) {
  check_durations(options);
  // A peer that closes its connection must not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  if (spec_.empty() && rendezvous_) spec_ = spec_of_rendezvous(*rendezvous_);
  check_options(spec_, options);
  auto listener = std::make_unique<rpc::Listener>(listener_of(place, options));
  address_ = listener->address();
  UniqueFd metrics = metrics_listener(options);
  advertised_address_ = advertised_address_of(place, address_);
  add(make_control_service(*this, [this] { return membership_->coordinator(); }));
  membership_ = std::make_shared<ServerMembership>(*this, options);
  if (auto service = membership_->service()) add(std::move(service));
  set_fence(membership_);
  coordination_.emplace(membership_);
  registered_.emplace(*this);
  host_server_ = std::make_unique<rpc::HostServer>(
      dispatcher_, rpc::HostServerOptions{.settings = settings_of(options)});
  server_ = std::make_unique<rpc::GrpcServer>(
      dispatcher_, std::move(listener),
      rpc::GrpcServerOptions{.security = security_, .settings = settings_of(options)});
  if (security_->is_insecure()) warning_.emplace(str(task_, " at ", address_));
  log(logging::Level::kDebug, "Started server of ", task_, " at ", address_);
  if (metrics.valid()) {
    metrics_ = std::make_unique<MetricsServer>(std::move(metrics), [membership = membership_] {
      return membership::prometheus_text(membership->status()) +
             membership::prometheus_text(refused_connections()) +
             membership::prometheus_text(monitoring::timings());
    });
    log_info(task_, " answers GET /metrics at ", metrics_->address());
  }
  membership_->start();
}

ServerCore::~ServerCore() {
  registered_.reset();
  request_stop("");
  finish("");
}

train::ClusterSpec ServerCore::cluster_spec() const {
  const std::lock_guard lock(mutex_);
  return spec_;
}

void ServerCore::set_cluster_spec(const train::ClusterSpec& spec) {
  const std::lock_guard lock(mutex_);
  spec_ = spec;
}

std::optional<rpc::Role> ServerCore::role_of(const TaskId& task) const {
  // Tasks that have not registered their addresses yet belong to the cluster, too.
  if (rendezvous_ && task.job == kWorker && task.index < rendezvous_->size) {
    return rpc::Role::kWorker;
  }
  return role_in(cluster_spec(), task);
}

std::shared_ptr<rpc::Channel> ServerCore::channel(const TaskId& task) {
  const std::optional<std::string> address = address_of(task);
  if (!address) {
    throw FailedPreconditionError(
        str("no address of ", task, " is known", rendezvous_ ? "; it has not registered yet" : ""));
  }
  return channels_.channel(task, *address);
}

std::optional<std::string> ServerCore::address_of(const TaskId& task) const {
  const std::lock_guard lock(mutex_);
  const auto& jobs = spec_.as_dict();
  const auto job = jobs.find(task.job);
  if (job == jobs.end()) return std::nullopt;
  const auto found = job->second.find(task.index);
  if (found == job->second.end()) return std::nullopt;
  return found->second;
}

void ServerCore::request_stop(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stop_requested_, true)) return;
  }
  if (!reason.empty() && reason != membership::kEndOfProgram) {
    log_info("Server of ", task_, " stops: ", reason);
  }
  signal_event(stop_event_.get());
}

void ServerCore::request_stop(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (!stop_requested_ && !error_) error_ = error;
  }
  request_stop(record_error(error).message);
}

bool ServerCore::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stop_requested_;
}

std::exception_ptr ServerCore::stop_error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

int ServerCore::join() {
  home_.check("a server");
  // Signals are watched until the server has ended: a second signal must not kill a task that is
  // saying goodbye.
  std::optional<SignalWatch> signals;
  if (stop_on_signals_) signals.emplace();
  // A task that only serves may log nothing else for hours.
  if (!is_stopping()) log_info(task_, " serves at ", address_);
  wait_for_end(signals ? &*signals : nullptr);
  finish("");
  const std::lock_guard lock(mutex_);
  if (signals && signal_ == 0) signal_ = signals->signal();  // it came during the end
  if (error_) std::rethrow_exception(error_);
  return signal_ == 0 ? 0 : kSignalExit + signal_;
}

void ServerCore::wait_for_end(const SignalWatch* signals) {
  pollfd watched[] = {{stop_event_.get(), POLLIN, 0},
                      {signals ? signals->descriptor() : -1, POLLIN, 0}};
  while (true) {
    if (::poll(watched, std::size(watched), -1) < 0) continue;  // EINTR
    if (watched[0].revents != 0) return;
    if (watched[1].revents == 0) continue;
    const int signal = signals->signal();
    {
      const std::lock_guard lock(mutex_);
      signal_ = signal;
    }
    return request_stop(str("signal ", signal, signal == SIGTERM ? " (SIGTERM)" : " (SIGINT)"));
  }
}

void ServerCore::stop(const std::string& reason) {
  home_.check("a server");
  request_stop(reason);
  // finish() waits for callbacks, and this is one.
  if (!membership_->in_callback()) finish(reason);
}

void ServerCore::finish(const std::string& reason) {
  std::call_once(membership_stopped_, [&] {
    membership_->stop(reason);
    if (metrics_) metrics_->stop();
  });
  channels_.close();
  server_->stop();
  host_server_->stop();
}

}  // namespace cohort::internal
