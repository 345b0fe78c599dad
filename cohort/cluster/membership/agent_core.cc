#include "cohort/cluster/membership/agent_core.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/membership/message_body.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {
namespace {

constexpr size_t kMostViewBytes = 16 << 20;  // with kMostTasks and kMostEvents of the largest

// Whether the same call may succeed later: nobody has refused it.
bool is_transient(const std::exception_ptr& error) {
  const Code code = record_error(error).code;
  return code == Code::kUnavailable || code == Code::kCancelled ||
         (code == Code::kDeadlineExceeded && rpc::detail_of(error).cause != Cause::kNotStarted);
}

}  // namespace

AgentCore::AgentCore(rpc::Clock& clock, std::shared_ptr<rpc::Channel> channel, AgentOptions options)
    : clock_(clock),
      channel_(std::move(channel)),
      options_(std::move(options)),
      heartbeat_(options_.heartbeat),
      term_seen_(options_.term_seen),
      generation_seen_(options_.generation_seen),
      random_(options_.incarnation) {
  membership::check(heartbeat_);
  if (options_.incarnation == 0) {
    throw InvalidArgumentError(str(options_.task, " needs an incarnation that is not 0"));
  }
}

void AgentCore::change(FunctionRef<void()> work) {
  std::vector<std::function<void()>> todo;
  {
    const std::lock_guard lock(mutex_);
    work();
    todo.swap(todo_);
  }
  changed_.notify_all();
  for (const auto& action : todo) action();
  callbacks_.run();
}

void AgentCore::wake_after(Duration delay, std::function<void(Time)> work) {
  const Time when = clock_.now() + delay;
  clock_.call_at(when, [weak = weak_from_this(), when, work = std::move(work)] {
    if (const auto self = weak.lock()) self->change([&] { work(when); });
  });
}

void AgentCore::after(Duration delay, std::function<void(Time)> work) {
  wake_after(delay, [this, epoch = epoch_, work = std::move(work)](Time when) {
    if (epoch == epoch_ && state_ != State::kEnded) work(when);
  });
}

void AgentCore::log(std::string line) {
  later([this, line = std::move(line)] { options_.log(line); });
}

void AgentCore::call(std::string_view method, std::string control, Duration timeout,
                     Answer answer) {
  call_at(channel_, method, std::move(control), timeout, std::move(answer));
}

void AgentCore::call_at(const std::shared_ptr<rpc::Channel>& channel, std::string_view method,
                        std::string control, Duration timeout, Answer answer) {
  auto done = [weak = weak_from_this(), epoch = epoch_,
               answer = std::move(answer)](rpc::CallResult result) {
    const auto self = weak.lock();
    if (!self) return;
    self->change([&] {
      if (epoch == self->epoch_ && self->state_ != State::kEnded)
        answer(with_body(std::move(result)));
    });
  };
  later([channel, path = str("membership/", method), control = std::move(control), timeout,
         done = std::move(done)]() mutable {
    channel->start(path, to_message(std::move(control)),
                   {.timeout = timeout, .max_reply_bytes = kMostViewBytes}, std::move(done));
  });
}

Duration AgentCore::jittered(Duration delay) {
  // splitmix64: incarnations differ, so tasks that start together ask at different times.
  uint64_t mixed = random_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return delay -
         Duration(static_cast<int64_t>(
             (mixed >> 33) % static_cast<uint64_t>(std::max<int64_t>(1, delay.count() / 2))));
}

std::string AgentCore::service_name() const {
  return str("the coordination service of ", channel_->peer(), " at ", channel_->address());
}

void AgentCore::start() {
  change([&] {
    if (state_ != State::kIdle) return;
    state_ = State::kRegistering;
    began_ = clock_.now();
    next_report_ = began_ + kReportEvery;
    register_pauses_ = {options_.first_retry, options_.longest_retry};
    is_elastic() ? search() : send_register();
  });
}

void AgentCore::send_register() {
  const RegisterRequest request{.address = options_.address,
                                .cluster_spec = options_.cluster_spec,
                                .program = options_.program,
                                .term_seen = term_seen_,
                                .generation_seen = generation_seen_,
                                .record = record_ ? record_->encode() : "",
                                .place = is_elastic() ? options_.elastic->place : ""};
  call("register", request.encode(), heartbeat_.dead_after + heartbeat_.interval,
       [this](rpc::CallResult result) { registered(std::move(result)); });
}

void AgentCore::registered(rpc::CallResult result) {
  if (result.error) {
    // The task does not hold the service any more.
    const bool is_over = is_elastic() && record_error(result.error).code == Code::kNotFound;
    if (is_transient(result.error) || is_over) return retry_register(result.error);
    return end(result.error);
  }
  RegisterReply reply;
  try {
    reply = RegisterReply::decode(result.reply.control);
  } catch (const Error&) {
    return end(std::current_exception());
  }
  for (const std::string& warning : reply.warnings) log(warning);
  state_ = State::kMember;
  service_ = reply.service;
  heartbeat_ = reply.heartbeat;
  heard_now();
  if (!is_elastic()) view_ = nullptr;
  version_ = 0;
  send_attend();
  send_watch();
  after(heartbeat_.interval, [this](Time when) { beat(when); });
}

void AgentCore::retry_register(const std::exception_ptr& error) {
  const Time now = clock_.now();
  const ErrorRecord record = record_error(error);
  if (now - began_ >= options_.start_timeout) {
    return end(rpc::make_error(record.code,
                               str(service_name(), " has not accepted ", options_.task, " within ",
                                   seconds_in(options_.start_timeout), " s: ", record.message),
                               "", {.peer = to_string(channel_->peer()), .phase = "start"}));
  }
  if (now >= next_report_) {
    next_report_ = now + kReportEvery;
    log(str("waiting for ", seconds_in(now - began_), " s for ", service_name(), ": ",
            record.message));
  }
  if (is_elastic()) {
    leave_service(State::kSearching);
    return search_failed(record.message);
  }
  later([channel = channel_] { channel->retry_now(); });
  after(jittered(register_pauses_.next()), [this](Time) { send_register(); });
}

void AgentCore::beat(Time when) {
  const Time now = clock_.now();
  // The timer is so late that this process itself did not run. It is up to the service what that
  // means.
  if (now - when > heartbeat_.interval / 2) heard_ = now;
  if (now - heard_ >= heartbeat_.dead_after) service_lost();
  if (state_ != State::kMember) return;
  send_heartbeat();
  after(heartbeat_.interval, [this](Time next) { beat(next); });
}

void AgentCore::send_heartbeat() {
  const HeartbeatRequest request{.seen = version_, .figures = figures_};
  call("heartbeat", request.encode(), heartbeat_.dead_after / 2, [this](rpc::CallResult result) {
    if (result.error) return failed(result.error);
    heard_now();
    try {
      const int64_t version = HeartbeatReply::decode(result.reply.control).version;
      // News that the watch should have brought.
      if (!watching_ || (version_ != 0 && version > version_)) send_watch();
    } catch (const Error&) {
      failed(std::current_exception());
    }
  });
}

void AgentCore::send_watch() {
  watching_ = true;
  const uint64_t number = ++watch_;
  const Duration at_most = heartbeat_.dead_after;
  call("watch", WatchRequest{.since = version_, .at_most = at_most}.encode(),
       at_most + heartbeat_.dead_after / 2,
       [this, number](rpc::CallResult result) { watched(number, std::move(result)); });
}

void AgentCore::send_attend() {
  attending_ = true;
  // The call ends and is made again, in case the network has lost it silently.
  const Duration at_most = 2 * heartbeat_.dead_after;
  call("attend", WatchRequest{.at_most = at_most}.encode(), at_most + heartbeat_.dead_after,
       [this](const rpc::CallResult& result) {
         attending_ = false;
         if (result.error) return failed(result.error);
         if (!looking_) send_attend();
       });
}

void AgentCore::watched(uint64_t number, rpc::CallResult result) {
  if (number == watch_) watching_ = false;
  catching_up_ = false;
  if (result.error) {
    watch_refused(result.error);
    failed(result.error);
  } else {
    heard_now();
    watch_refused_since_.reset();
    try {
      apply(View::decode(result.reply.control));
    } catch (const Error&) {
      failed(std::current_exception());
    }
  }
  // After a failure look_again does.
  if (state_ == State::kMember && !watching_ && !looking_) send_watch();
}

// A service that answers, but never tells who is there, is of no use; heartbeats do not show it.
void AgentCore::watch_refused(const std::exception_ptr& error) {
  const ErrorRecord record = record_error(error);
  if (is_transient(error) || record.code == Code::kAborted || record.code == Code::kNotFound)
    return;
  const Time now = clock_.now();
  if (!watch_refused_since_) watch_refused_since_ = now;
  if (now - *watch_refused_since_ < heartbeat_.dead_after) return;
  end(rpc::make_error(
      record.code,
      str(service_name(), " has not told who is in the cluster for ",
          seconds_in(now - *watch_refused_since_), " s: ", record.message),
      to_string(channel_->peer()),
      {.peer = to_string(channel_->peer()), .generation = generation_seen_, .phase = "watch"}));
}

void AgentCore::catch_up() {
  if (state_ != State::kMember || looking_ || std::exchange(catching_up_, true)) return;
  send_watch();
}

void AgentCore::act_in(int64_t generation, const ViewPtr& view) {
  acting_ = generation;
  options_.on_generation(generation, view);
}

void AgentCore::apply(View view) {
  if (view.service != service_ || view.version <= version_) return;
  if (!view.failure.empty()) return end(rpc::decode_error(view.failure));
  const int64_t known = version_;
  std::erase_if(view.events, [&](const Event& event) { return event.version <= known; });
  if (view.generation < generation_seen_ && view.generation != 0) {
    return end(
        make_error(Code::kInternal, str(service_name(), " is in generation ", view.generation,
                                        ", after this task was in ", generation_seen_)));
  }
  generation_seen_ = std::max(generation_seen_, view.generation);
  term_seen_ = std::max(term_seen_, view.term);
  version_ = view.version;
  if (is_elastic()) return apply_elastic(std::move(view));
  view_ = std::make_shared<const View>(std::move(view));
  act_in(view_->generation, view_);
  tell(view_);
}

void AgentCore::tell(const ViewPtr& view) {
  callbacks_.add([this, view] { options_.on_change(view); });
  for (const Event& event : view->events) {
    const bool is_error = event.kind == EventKind::kLost || event.kind == EventKind::kReported;
    const Member* member = view->find(event.task);
    if (!is_error || event.task == options_.task || (member != nullptr && member->observer)) {
      continue;
    }
    callbacks_.add([this, error = rpc::decode_error(event.error)] { options_.on_error(error); });
  }
}

void AgentCore::failed(const std::exception_ptr& error) {
  if (state_ == State::kEnded) return;
  const Code code = record_error(error).code;
  if (code == Code::kAborted) return end(error);
  if (code == Code::kNotFound) return register_anew();
  if (is_elastic() && (code == Code::kCancelled || holder_is_dead())) {
    last_failure_ = error;
    return search();
  }
  last_failure_ = error;
  // Nobody has answered for a long time, or this process has stood still: no need to wait longer.
  if (code == Code::kDeadlineExceeded) return look_soon(Duration::zero());
  if (code != Code::kUnavailable) return look_soon(heartbeat_.interval / 2);
  // A connection that broke was perhaps only reset; one that is refused as well has nobody behind
  // it.
  const Time now = clock_.now();
  const bool first = !trouble_since_;
  if (first) trouble_since_ = now;
  if (looking_) return;
  // So that the next look finds a connection, and not the failure of the last attempt.
  later([channel = channel_] { channel->retry_now(); });
  const Duration grace = heartbeat_.reconnect_grace;
  if (!first && now - *trouble_since_ >= grace) {
    service_lost();
    if (state_ == State::kMember) look_soon(heartbeat_.interval / 2);
  } else {
    look_soon(first ? Duration::zero() : grace / 3);
  }
}

void AgentCore::look_soon(Duration delay) {
  if (looking_) return;
  looking_ = true;
  after(delay, [this](Time) { look_again(); });
}

void AgentCore::look_again() {
  looking_ = false;
  if (state_ != State::kMember) return;
  if (!attending_) send_attend();
  if (!watching_) send_watch();
  send_heartbeat();
}

void AgentCore::service_lost() {
  if (is_elastic()) return search();
  const Time now = clock_.now();
  const std::string why = last_failure_ ? record_error(last_failure_).message
                                        : str("no answer for ", seconds_in(now - heard_), " s");
  const bool wait = options_.on_service_lost == OnServiceLost::kWait &&
                    now - heard_ < heartbeat_.dead_after + options_.lease;
  if (!wait) {
    return end(rpc::make_error(Code::kUnavailable, str("lost ", service_name(), ": ", why),
                               to_string(channel_->peer()),
                               {.peer = to_string(channel_->peer()),
                                .generation = generation_seen_,
                                .phase = "heartbeat"}));
  }
  if (std::exchange(waits_for_service_, true)) return;
  log(str("lost ", service_name(), ": ", why, "; waiting for it for ", seconds_in(options_.lease),
          " s"));
}

void AgentCore::heard_now() {
  heard_ = clock_.now();
  trouble_since_.reset();
  waits_for_service_ = false;
}

void AgentCore::register_anew() {
  if (is_elastic()) return search();
  if (options_.on_service_lost == OnServiceLost::kFail) {
    return end(
        rpc::make_error(Code::kUnavailable,
                        str("lost ", service_name(),
                            ": another one is in its place, which does not know ", options_.task),
                        to_string(channel_->peer()),
                        {.peer = to_string(channel_->peer()),
                         .generation = generation_seen_,
                         .phase = "heartbeat"}));
  }
  log(str(service_name(), " is a new one; ", options_.task, " leaves generation ", generation_seen_,
          " and registers again"));
  view_ = nullptr;
  leave_service(State::kRegistering);
  began_ = clock_.now();
  next_report_ = began_ + kReportEvery;
  register_pauses_ = {options_.first_retry, options_.longest_retry};
  send_register();
}

// Before a request to another service is sent: with it the new group may start.
void AgentCore::leave_service(State next) {
  act_in(0, nullptr);
  ++epoch_;
  state_ = next;
  version_ = 0;
  watching_ = false;
  catching_up_ = false;
  watch_refused_since_.reset();
  attending_ = false;
  looking_ = false;
  trouble_since_.reset();
}

void AgentCore::end(std::exception_ptr error) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  error_ = error;
  act_in(0, nullptr);
  ++epoch_;
  for (auto& [id, request] : requests_) {
    later([done = std::move(request.done), error] { done({.error = error, .reply = {}}); });
  }
  requests_.clear();
  if (!leaving_) callbacks_.add([this, error] { options_.on_error(error); });
}

void AgentCore::stop() {
  change([&] {
    leaving_ = true;
    end(make_error(Code::kCancelled, "the membership agent has stopped"));
  });
  callbacks_.stop();
}

}  // namespace cohort::internal::membership
