// A task's requests to the coordination service beyond its membership, and its knowledge of the
// group.
#include <algorithm>

#include "cohort/cluster/membership/agent_core.h"
#include "cohort/cluster/membership/barriers.h"
#include "cohort/cluster/membership/message_body.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/repeating_channel.h"
#include "cohort/cluster/rpc/text.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal::membership {
namespace {

constexpr const char* kLeave = "leave";
constexpr const char* kReport = "report";
constexpr Duration kFirstRetry = std::chrono::milliseconds(10);
constexpr Duration kLongestRetry = std::chrono::milliseconds(500);
// The time that the service's answer takes to come back.
constexpr Duration kMostMargin = std::chrono::milliseconds(200);

}  // namespace

void AgentCore::request(std::string method, Encode encode, Duration timeout, Answer done) {
  change([&] {
    if (state_ == State::kEnded) {
      later([done = std::move(done), error = error_] { done({.error = error, .reply = {}}); });
      return;
    }
    const uint64_t id = ++last_id_;
    requests_.emplace(id, Request{.method = std::move(method),
                                  .encode = std::move(encode),
                                  .deadline = clock_.now() + bounded_wait(timeout),
                                  .pauses = {kFirstRetry, kLongestRetry},
                                  .done = std::move(done)});
    attempt(id);
  });
}

uint64_t AgentCore::oldest_of(const std::string& method) const {
  return std::find_if(requests_.begin(), requests_.end(),
                      [&](const auto& one) { return one.second.method == method; })
      ->first;
}

void AgentCore::attempt(uint64_t id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Request& request = found->second;
  const Duration left = request.deadline - clock_.now();
  if (left <= Duration::zero()) {
    return finish(
        id, {.error = make_error(
                 Code::kDeadlineExceeded,
                 str("membership/", request.method, ": ", service_name(), " did not answer in time",
                     last_failure_ ? ": " + record_error(last_failure_).message : "")),
             .reply = {}});
  }
  if (state_ != State::kMember) {
    return attempted(
        id, {.error = make_error(Code::kUnavailable,
                                 str(options_.task, " is not registered at ", service_name())),
             .reply = {}});
  }
  if (is_elastic() && request.sent_to != 0 && request.sent_to != service_ &&
      request.method != kLeave && request.method != kReport) {
    return finish(id, {.error = rpc::make_error(
                           Code::kUnavailable,
                           str("membership/", request.method,
                               ": the coordination service has moved to ", channel_->peer(),
                               " while the call was under way; whether it had taken effect "
                               "is lost with what the store held; call again"),
                           "",
                           {.peer = to_string(channel_->peer()),
                            .rpc = "membership/" + request.method,
                            .cause = Cause::kStartedAgain}),
                       .reply = {}});
  }
  request.sent_to = service_;
  later([weak = weak_from_this(), channel = channel_, id, left,
         path = "membership/" + request.method,
         control = request.encode({.at_most = left - std::min(left / 10, kMostMargin),
                                   .id = id,
                                   .oldest = oldest_of(request.method)})]() mutable {
    channel->start(path, to_message(std::move(control)),
                   {.timeout = left, .max_reply_bytes = kMostValueBytes + (64 << 10)},
                   [weak, id](rpc::CallResult result) {
                     const auto self = weak.lock();
                     if (self)
                       self->change([&] { self->attempted(id, with_body(std::move(result))); });
                   });
  });
}

void AgentCore::attempted(uint64_t id, rpc::CallResult result) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  if (!result.error) return finish(id, std::move(result));
  const Code code = record_error(result.error).code;
  // An Unavailable that names a task is the service's answer: that task cannot come.
  const bool about_peer = code == Code::kUnavailable && !record_error(result.error).task.empty() &&
                          record_error(result.error).task != to_string(channel_->peer());
  const bool again = (code == Code::kUnavailable && !about_peer) || code == Code::kCancelled ||
                     code == Code::kNotFound;
  if (!again) return finish(id, std::move(result));
  last_failure_ = result.error;
  Request& request = found->second;
  if (request.method == kLeave) {
    // A task that is gone, is going or does not know this one need not be told that it goes, too.
    const Time since = request.failed_since.value_or(clock_.now());
    request.failed_since = since;
    if (clock_.now() - since >= heartbeat_.reconnect_grace) return finish(id, std::move(result));
    later([channel = channel_] { channel->retry_now(); });
  }
  const Duration left = std::max(request.deadline - clock_.now(), Duration::zero());
  wake_after(std::min(jittered(request.pauses.next()), left), [this, id](Time) { attempt(id); });
}

void AgentCore::finish(uint64_t id, rpc::CallResult result) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  later([done = std::move(found->second.done), result = std::move(result)] { done(result); });
  requests_.erase(found);
}

void AgentCore::leave(const std::string& where, Duration timeout, std::function<void()> done) {
  bool is_member = false;
  change([&] {
    is_member = state_ == State::kMember;
    leaving_ = true;
    if (waits_for_service_) timeout = std::min(timeout, heartbeat_.reconnect_grace);
  });
  const auto left = [weak = weak_from_this(), done = std::move(done)](const rpc::CallResult&) {
    if (const auto self = weak.lock()) {
      self->change([&] { self->end(make_error(Code::kCancelled, "this task has left")); });
    }
    done();
  };
  if (!is_member) return left({});
  request(
      kLeave, [where](const Attempt&) { return LeaveRequest{.where = where}.encode(); }, timeout,
      left);
}

void AgentCore::report(const std::exception_ptr& error, std::optional<Duration> timeout,
                       Answer done) {
  const std::string bytes = rpc::encode_error(error);
  {
    const std::lock_guard lock(mutex_);
    if (!timeout) {
      timeout = state_ == State::kMember ? heartbeat_.dead_after : options_.start_timeout;
    } else if (waits_for_service_) {
      timeout = std::min(*timeout, heartbeat_.reconnect_grace);
    }
  }
  request(
      kReport, [bytes](const Attempt&) { return ReportRequest{.error = bytes}.encode(); }, *timeout,
      std::move(done));
}

void AgentCore::set_figure(const std::string& name, double value) {
  check_name("a figure's name", name, kMostNameBytes);
  const std::lock_guard lock(mutex_);
  if (figures_.size() >= kMostFigures && figures_.count(name) == 0) {
    throw ResourceExhaustedError(
        str("figure '", rpc::printable(name), "': a task may have ", kMostFigures));
  }
  figures_[name] = value;
}

void AgentCore::drop_figure(const std::string& name) {
  const std::lock_guard lock(mutex_);
  figures_.erase(name);
}

Figures AgentCore::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

ViewPtr AgentCore::wait(std::optional<Duration> timeout, FunctionRef<bool(const ViewPtr&)> ready) {
  std::unique_lock lock(mutex_);
  const auto done = [&] { return state_ == State::kEnded || (view_ && ready(view_)); };
  if (!timeout) {
    changed_.wait(lock, done);  // the start's timeout ends the agent
  } else if (!changed_.wait_for(lock, bounded_wait(*timeout), done)) {
    return nullptr;
  }
  if (state_ == State::kEnded) std::rethrow_exception(error_);
  return view_;
}

ViewPtr AgentCore::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

int64_t AgentCore::bound_generation() const {
  const std::lock_guard lock(mutex_);
  if (is_elastic() && acting_ == 0 && state_ != State::kEnded) {
    throw AbortedError(str(options_.task, " is between two groups; wait for the next one first"));
  }
  return acting_;
}

int64_t AgentCore::generation() const {
  const std::lock_guard lock(mutex_);
  return acting_;
}

std::exception_ptr AgentCore::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

int64_t AgentCore::stale_refused() const {
  const std::lock_guard lock(mutex_);
  return stale_refused_;
}

void AgentCore::check(const rpc::Caller& caller) {
  std::exception_ptr refusal;
  bool is_behind = false;
  {
    const std::lock_guard lock(mutex_);
    refusal = refusal_of(caller);
    if (!refusal) return;
    is_behind = record_error(refusal).code == Code::kUnavailable;
    if (!is_behind) ++stale_refused_;
  }
  if (is_behind) change([&] { catch_up(); });
  std::rethrow_exception(refusal);
}

std::exception_ptr AgentCore::refusal_of(const rpc::Caller& caller) const {
  const Member* member = view_ ? view_->find(caller.task) : nullptr;
  const bool is_member = member != nullptr && member->state == TaskState::kAlive &&
                         member->incarnation == caller.incarnation;
  if (acting_ != 0 && caller.generation == acting_ && is_member) return nullptr;
  const ErrorDetail detail{.peer = to_string(caller.task),
                           .incarnation = caller.incarnation,
                           .generation = acting_,
                           .phase = "fencing",
                           .cause = Cause::kNotMember};
  // News reach tasks at different times. A caller that has them first must not suffer for it.
  const int64_t told =
      is_elastic() ? acting_ : generation_seen_;  // what it has seen may be no group
  if (caller.generation > told && state_ != State::kEnded &&
      (!is_elastic() || !view_ || caller.generation > view_->generation)) {
    ErrorDetail early = detail;
    early.cause = Cause::kBehind;  // by which the caller's channel knows that it may call again
    return rpc::make_error(
        Code::kUnavailable,
        str(options_.task, " is behind: it is in generation ", acting_, ", ",
            rpc::printable(to_string(caller.task)), " in ", caller.generation, "; call again"),
        to_string(options_.task), early);
  }
  return rpc::make_error(Code::kAborted,
                         str("fenced, generation ", acting_, ": the call is of ",
                             rpc::printable(to_string(caller.task)), ", incarnation ",
                             hex(caller.incarnation), ", in generation ", caller.generation,
                             is_member ? "" : ", which is not a member of the group"),
                         to_string(options_.task), detail);
}

}  // namespace cohort::internal::membership
