#include "cohort/cluster/server_membership.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/address.h"
#include "cohort/cluster/cluster_roles.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/host/process_place.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/version.h"

namespace cohort::internal {
namespace {

using membership::Member;
using membership::TaskState;

constexpr auto kLastWait = std::chrono::seconds(2);
// Errors that nobody has asked for yet.
constexpr size_t kMostUnhandled = 1000;

// The times of elastic clusters, where nothing else is set.
constexpr std::chrono::milliseconds kElasticInterval{500};
constexpr std::chrono::milliseconds kElasticTimeout{2000};
constexpr std::chrono::milliseconds kGraceOnOneHost{30};
constexpr std::chrono::milliseconds kGraceOverNetwork{300};

bool is_on_one_host(const train::ClusterSpec& spec) {
  const std::vector<TaskId> tasks = spec.tasks();
  return std::all_of(tasks.begin(), tasks.end(), [&](const TaskId& task) {
    return is_loopback(parse_address(spec.task_address(task.job, task.index), {.any_port = true}));
  });
}

std::vector<membership::Section> program() {
  return {{.name = "version of cohort", .text = kVersion, .strict = false}};
}

std::string spec_text(const ServerContext& context, bool has_rendezvous) {
  return has_rendezvous ? str("rendezvous of ", context.rendezvous()->size, " tasks")
                        : context.cluster_spec().to_string();
}

membership::RosterOptions roster_of(const ServerContext& context, bool has_rendezvous,
                                    const distribute::ServerOptions& options) {
  membership::RosterOptions roster;
  roster.heartbeat = heartbeat_of(context.cluster_spec(), options);
  if (has_rendezvous) {
    for (int i = 0; i < context.rendezvous()->size; ++i) roster.tasks[{kWorker, i}] = "";
    return roster;
  }
  const train::ClusterSpec spec = context.cluster_spec();
  for (const TaskId& task : spec.tasks()) {
    roster.tasks[task] = spec.task_address(task.job, task.index);
  }
  return roster;
}

// The tasks that may hold the service of an elastic cluster.
std::vector<TaskId> holders(const ServerContext& context, bool has_rendezvous) {
  std::vector<TaskId> tasks;
  if (has_rendezvous) {
    for (int i = 0; i < context.rendezvous()->size; ++i) tasks.push_back({kWorker, i});
    return tasks;
  }
  for (const TaskId& task : context.cluster_spec().tasks()) {
    if (task.job == kChief || task.job == kWorker) tasks.push_back(task);
  }
  return tasks;
}

bool is_dead(const Member& member) { return has_ended(member.place); }

void log_line(const std::string& text) { log_info(text); }
void log_detail(const std::string& text) { log(logging::Level::kDebug, text); }

}  // namespace

membership::HeartbeatSettings heartbeat_of(const train::ClusterSpec& spec,
                                           const distribute::ServerOptions& options) {
  static const distribute::ServerOptions defaults;
  std::chrono::milliseconds interval = options.heartbeat_interval;
  std::chrono::milliseconds timeout = options.heartbeat_timeout;
  if (options.elastic && interval == defaults.heartbeat_interval) interval = kElasticInterval;
  if (options.elastic && timeout == defaults.heartbeat_timeout) timeout = kElasticTimeout;
  std::chrono::milliseconds grace = options.reconnect_grace;
  if (grace == std::chrono::milliseconds(0)) {
    grace = std::min(is_on_one_host(spec) ? kGraceOnOneHost : kGraceOverNetwork, timeout);
  }
  return {.interval = bounded_wait(interval),
          .dead_after = bounded_wait(timeout),
          .reconnect_grace = bounded_wait(grace)};
}

ServerMembership::ServerMembership(ServerContext& context, const distribute::ServerOptions& options)
    : context_(context),
      leader_(coordinating_task(context.cluster_spec())),
      has_rendezvous_(context.rendezvous().has_value()),
      identity_(context.identity()) {
  if (options.elastic) {
    elastic_ = std::make_shared<membership::ElasticService>(
        clock_, membership::ElasticServiceOptions{
                    .self = context.task(),
                    .tasks = holders(context, has_rendezvous_),
                    .channel_to = [this](const TaskId& task) { return context_.channel(task); },
                    .options = [this, options] { return service_options(options); },
                    .log = log_line});
  } else if (context.task() == leader_) {
    service_ = std::make_shared<membership::CoordinationService>(clock_, service_options(options));
  }
  // In a parameter server cluster, ps tasks and workers wait until a new coordinator comes: ps
  // tasks keep the variables, workers the place where they are.
  const bool waits = context.task().job == kPs ||
                     (context.task().job == kWorker && context.cluster_spec().has_job(kPs));
  agent_ = std::make_unique<membership::MembershipAgent>(
      clock_, context.channel(leader_),
      membership::AgentOptions{
          .task = context.task(),
          .incarnation = context.identity()->incarnation(),
          .address = context.advertised_address(),
          .cluster_spec = spec_text(context, has_rendezvous_),
          .program = program(),
          .start_timeout = bounded_wait(options.start_timeout),
          .on_service_lost =
              waits ? membership::OnServiceLost::kWait : membership::OnServiceLost::kFail,
          .lease = bounded_wait(options.ps_lease),
          .elastic = options.elastic ? std::optional(elastic_options()) : std::nullopt,
          .heartbeat = heartbeat_of(context.cluster_spec(), options),
          .on_generation = [this](int64_t generation,
                                  const membership::ViewPtr& view) { act_on(generation, view); },
          .on_error = [this](std::exception_ptr error) { handle_error(std::move(error)); },
          .on_change =
              [this](const membership::ViewPtr& view) {
                for (const auto& listener : listeners()) listener->on_view(*view);
              },
          .log = log_line});
  if (elastic_) elastic_->follow(agent_->standing_source());
}

membership::CoordinationOptions ServerMembership::service_options(
    const distribute::ServerOptions& options) {
  membership::CoordinationOptions made{.incarnation = context_.identity()->incarnation(),
                                       .self = context_.task(),
                                       .roster = roster_of(context_, has_rendezvous_, options),
                                       .cluster_spec = spec_text(context_, has_rendezvous_),
                                       .program = program(),
                                       .start_timeout = bounded_wait(options.start_timeout),
                                       .store = {},
                                       .log = log_line,
                                       .detail = log_detail,
                                       .on_change = [this] {
                                         { const std::lock_guard lock(mutex_); }
                                         changed_.notify_all();
                                       }};
  if (options.elastic) {
    // A task may hold the service several times; each time it is another one.
    made.incarnation += services_held_++ * 0x9e3779b97f4a7c15;
    if (made.incarnation == 0) made.incarnation = 1;
    made.roster.elastic = {.self = context_.task(),
                           .min_tasks = options.elastic->min_tasks,
                           .start_wait = bounded_wait(options.elastic->start_wait),
                           .record = {},
                           .is_dead = is_dead};
  }
  return made;
}

membership::ElasticAgentOptions ServerMembership::elastic_options() {
  return {.tasks = holders(context_, has_rendezvous_),
          .channel_to = [this](const TaskId& task) { return context_.channel(task); },
          .standing = [elastic = elastic_] { return elastic->standing(); },
          .coordinate =
              [elastic = elastic_](const membership::View& record) { elastic->coordinate(record); },
          // Only the task at the rendezvous can be found by tasks that know nothing else.
          .may_begin = !has_rendezvous_ || context_.task() == leader_,
          .place = process_place(),
          .is_dead = is_dead};
}

std::shared_ptr<rpc::Service> ServerMembership::service() const {
  if (elastic_) return elastic_;
  return service_;
}

std::optional<membership::View> ServerMembership::held_status() const {
  if (elastic_) return elastic_->status();
  if (service_) return service_->status();
  return std::nullopt;
}

TaskId ServerMembership::coordinator() const {
  if (!elastic_) return leader_;
  if (elastic_->status()) return context_.task();
  const membership::ViewPtr known = agent_->view();
  return known && !known->coordinator.job.empty() ? known->coordinator : leader_;
}

void ServerMembership::start() { agent_->start(); }

void ServerMembership::stop(const std::string& where) {
  if (agent_->error()) return agent_->stop();  // it is in no group that it could leave
  agent_->leave(where);
  if (held_status()) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLastWait, [&] { return others_stay_ || !others_are_alive(); });
  }
  if (elastic_) elastic_->stop();
  agent_->stop();
}

// Tasks that this very thread will end later do not count, because waiting for them would be in
// vain: a program may destroy its servers one after the other.
bool ServerMembership::others_are_alive() const {
  const std::optional<membership::View> status = held_status();
  if (!status) return false;
  for (const Member& member : status->members) {
    const bool is_other = member.task != context_.task() && member.state == TaskState::kAlive;
    if (is_other && !context_.is_left_to_this_thread(member.incarnation)) return true;
  }
  return false;
}

membership::View ServerMembership::status() const {
  if (std::optional<membership::View> held = held_status()) return *std::move(held);
  const membership::ViewPtr known = agent_->view();
  if (!known) return {};
  membership::View view = *known;
  for (Member& member : view.members) {
    if (member.task == context_.task()) member.figures = agent_->figures();
  }
  return view;
}

void ServerMembership::act_on(int64_t generation, const membership::ViewPtr& view) {
  identity_->set_generation(generation);
  if (!has_rendezvous_ || view == nullptr) return;
  try {
    learn_addresses(*view);
  } catch (const Error& error) {  // an address that is none
    log_warning(context_.task(), ": ", error.what());
  }
}

void ServerMembership::learn_addresses(const membership::View& view) {
  train::ClusterSpec::Jobs jobs = context_.cluster_spec().as_dict();
  for (const Member& member : view.members) {
    // This one's is known, and calls to it are under way.
    if (member.address.empty() || member.task == leader_) continue;
    jobs[member.task.job][member.task.index] = member.address;
  }
  context_.set_cluster_spec(train::ClusterSpec(std::move(jobs)));
}

bool ServerMembership::in_callback() const {
  if (agent_->in_callback()) return true;
  const std::lock_guard lock(mutex_);
  return delivers_ && deliverer_ == std::this_thread::get_id();
}

void ServerMembership::handle_error(std::exception_ptr error) {
  // The error that ends this task's membership ends its server, too: join() throws it.
  if (const std::exception_ptr end = agent_->error()) {
    for (const auto& listener : listeners()) listener->on_end(end);
    context_.request_stop(end);
  }
  std::unique_lock lock(mutex_);
  if (unhandled_.size() < kMostUnhandled) unhandled_.push_back(std::move(error));
  deliver(lock);
}

void ServerMembership::on_error(std::function<void(std::exception_ptr)> handler) {
  std::unique_lock lock(mutex_);
  handler_ = std::move(handler);
  deliver(lock);
}

void ServerMembership::listen(std::weak_ptr<MembershipListener> listener) {
  const std::lock_guard lock(mutex_);
  std::erase_if(listeners_, [](const auto& known) { return known.expired(); });
  listeners_.push_back(std::move(listener));
}

std::vector<std::shared_ptr<MembershipListener>> ServerMembership::listeners() {
  std::vector<std::shared_ptr<MembershipListener>> live;
  const std::lock_guard lock(mutex_);
  for (const auto& listener : listeners_) {
    if (auto alive = listener.lock()) live.push_back(std::move(alive));
  }
  return live;
}

void ServerMembership::deliver(std::unique_lock<std::mutex>& lock) {
  if (delivers_) return;
  delivers_ = true;
  deliverer_ = std::this_thread::get_id();
  while (!unhandled_.empty() && handler_) {
    const std::exception_ptr error = std::move(unhandled_.front());
    unhandled_.pop_front();
    const auto handler = handler_;
    lock.unlock();
    try {
      handler(error);
    } catch (...) {  // the errors behind this one must come all the same
      log_warning(context_.task(), ": the handler of errors threw: ",
                  record_error(std::current_exception()).message);
    }
    lock.lock();
  }
  delivers_ = false;
}

}  // namespace cohort::internal
