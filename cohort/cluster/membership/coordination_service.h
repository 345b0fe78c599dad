// The service at which a cluster's tasks register, learn of each other, wait for each other and
// leave each other small values. There is one in a cluster: in the chief, else in the first worker.
//
//   membership::CoordinationService service(clock, {.incarnation = random, .self = {"chief", 0},
//                                                   .roster = {.tasks = {{{"chief", 0}, "h0:2222"},
//                                                                        {{"worker", 0}, "h1:2222"}}}});
//   server.add(service);          // tasks talk to it through MembershipAgent
//
// docs/membership.md says what a person sees for each fault.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/membership/coordination_options.h"
#include "cohort/cluster/membership/messages.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/cluster/rpc/service.h"

namespace cohort::internal::membership {

class CoordinationCore;

// What every "membership" service can be asked, in order of CoordinationMethod::Number.
std::span<const rpc::MethodSpec> coordination_methods();

// Errors of the constructor: InvalidArgument (settings, see check).
// Thread safety: any thread.
class CoordinationService final : public rpc::Service {
 public:
  // Numbers of methods().
  using Method = CoordinationMethod::Number;
  using enum CoordinationMethod::Number;

  CoordinationService(rpc::Clock& clock, CoordinationOptions options);
  ~CoordinationService() override;

  std::string_view name() const override { return "membership"; }
  std::span<const rpc::MethodSpec> methods() const override;
  void handle(size_t method, std::unique_ptr<rpc::Call> call) override;
  void stop() override;

  // The transport says that the connection of this task's process broke. It has reconnect_grace to
  // call again. (A watch or an attendance that is cancelled says the same.)
  void connection_lost(const TaskId& task, uint64_t incarnation);
  // The parent of the process says that it has ended.
  void process_gone(const TaskId& task, uint64_t incarnation);
  // Nobody answers at the task's address: a group that is taken over does not wait for it.
  void absent(const TaskId& task);
  // Ends the group for all, with this error.
  void fail(const std::exception_ptr& error);

  // The view with ages and figures.
  View status() const;
  // Calls of stale incarnations and generations that were refused.
  int64_t stale_refused() const;

 private:
  std::shared_ptr<CoordinationCore> core_;
};

}  // namespace cohort::internal::membership
