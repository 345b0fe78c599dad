#include "cohort/cluster/coordination.h"

#include <utility>

#include "cohort/cluster/server_membership.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::distribute {
namespace {

TaskStatus status_of(internal::membership::TaskState state) {
  using internal::membership::TaskState;
  switch (state) {
    case TaskState::kAwaited:
      return TaskStatus::kAwaited;
    case TaskState::kAlive:
      return TaskStatus::kAlive;
    case TaskState::kLost:
      return TaskStatus::kLost;
    case TaskState::kLeft:
      return TaskStatus::kLeft;
  }
  return TaskStatus::kAwaited;
}

ClusterView to_public(const internal::membership::View& view) {
  ClusterView result{.generation = view.generation};
  for (const internal::membership::Member& member : view.members) {
    result.tasks.push_back({.task = member.task,
                            .address = member.address,
                            .status = status_of(member.state),
                            .incarnation = member.incarnation});
  }
  return result;
}

}  // namespace

std::string_view task_status_name(TaskStatus status) {
  switch (status) {
    case TaskStatus::kAwaited:
      return "awaited";
    case TaskStatus::kAlive:
      return "alive";
    case TaskStatus::kLost:
      return "lost";
    case TaskStatus::kLeft:
      return "left";
  }
  return "unknown";
}

Coordination::Coordination(std::shared_ptr<internal::ServerMembership> membership)
    : membership_(std::move(membership)) {}

ClusterView Coordination::wait_for_start() {
  return to_public(*membership_->agent().wait_for_start());
}
ClusterView Coordination::view() const { return to_public(membership_->status()); }

void Coordination::barrier(const std::string& name, const BarrierOptions& options) {
  membership_->agent().barrier(
      name, {.tasks = options.tasks, .timeout = internal::bounded_wait(options.timeout)});
}

void Coordination::set(const std::string& key, const std::string& value,
                       const SetOptions& options) {
  membership_->agent().set(key, value, {.session = options.session});
}
std::string Coordination::get(const std::string& key, std::chrono::milliseconds timeout) {
  return membership_->agent().get(key, internal::bounded_wait(timeout));
}
std::optional<std::string> Coordination::find(const std::string& key) {
  return membership_->agent().find(key);
}
int64_t Coordination::add(const std::string& key, int64_t delta) {
  return membership_->agent().add(key, delta);
}
bool Coordination::compare_and_set(const std::string& key,
                                   const std::optional<std::string>& expected,
                                   const std::string& value, const SetOptions& options) {
  return membership_->agent().compare_and_set(key, expected, value, {.session = options.session});
}
bool Coordination::remove(const std::string& key) { return membership_->agent().remove(key); }
std::vector<std::string> Coordination::list(const std::string& prefix) {
  return membership_->agent().list(prefix);
}

void Coordination::set_figure(const std::string& name, double value) {
  membership_->agent().set_figure(name, value);
}

void Coordination::drop_figure(const std::string& name) { membership_->agent().drop_figure(name); }
void Coordination::report(std::exception_ptr error) { membership_->agent().report(error); }
void Coordination::on_error(std::function<void(std::exception_ptr)> handler) {
  membership_->on_error(std::move(handler));
}

}  // namespace cohort::distribute
