// A task's side of the membership of its cluster: it registers, says that it lives, and learns at
// once who is lost, has left or come.
//
//   membership::MembershipAgent agent(clock, channel_to_the_service,
//                                     {.task = {"worker", 1}, .incarnation = random,
//                                      .address = "10.0.0.2:2222", .cluster_spec = spec.to_string(),
//                                      .on_error = [&](std::exception_ptr error) { ... }});
//   agent.start();
//   agent.wait_for_start();                       // all tasks are there; or says who is missing
//   agent.set("data/seed", "42");
//   agent.barrier("initialised", {.timeout = 30s});
//   agent.leave("after the last step");
//
// docs/membership.md: states, times, what a person sees for each fault.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/membership/agent_options.h"
#include "cohort/cluster/membership/messages.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/cluster/rpc/service.h"

namespace cohort::internal::membership {

struct BarrierOptions {
  std::vector<TaskId> tasks = {};  // none: all of the group that are alive
  Duration timeout = std::chrono::minutes(1);
};

struct StoreOptions {
  bool session = false;          // the key goes when this task's process does
  bool this_generation = false;  // Aborted if the group has changed
  Duration timeout = std::chrono::seconds(10);
};

class AgentCore;

// Errors of all calls that wait: DeadlineExceeded, the error that has ended the agent (error()),
// and those that each call names. Calls are repeated over new connections; a call that changes
// something takes effect once.
// Thread safety: any thread.
class MembershipAgent {
 public:
  // Errors: InvalidArgument (no incarnation, wrong settings).
  MembershipAgent(rpc::Clock& clock, std::shared_ptr<rpc::Channel> channel, AgentOptions options);
  ~MembershipAgent();

  // Begins to register; returns at once.
  void start();
  // Waits until the group has started. Errors: DeadlineExceeded (names who is missing, or the
  // service that does not answer), Unavailable (the service cannot be reached), FailedPrecondition
  // (another program, cluster spec or version), Aborted (this task is registered already and
  // alive).
  ViewPtr wait_for_start();
  // The same, but waits for `timeout` at most; null if the group has not started by then.
  ViewPtr wait_for_start(Duration timeout);
  // Waits until all tasks of the group are alive, in generation `at_least` or later; in an elastic
  // cluster, until its members are agreed on such a generation.
  // Errors: DeadlineExceeded (names who is missing).
  ViewPtr wait_for_group(int64_t at_least, Duration timeout);

  // Null until the service has answered.
  ViewPtr view() const;
  // The generation in which this task acts; 0: none, since it has not started or is between two
  // groups.
  int64_t generation() const;
  // Tells what it does about the service of an elastic cluster: kSearches, kObeys or kEnded. The
  // function may be called for longer than the agent lives.
  std::function<Standing()> standing_source() const;
  // Null while it goes on.
  std::exception_ptr error() const;
  // Whether a call to this task comes from its group as it is now. Errors: Aborted "fenced,
  // generation g"; Unavailable (the caller knows a later generation; this agent asks for it).
  void check(const rpc::Caller& caller) const;
  int64_t stale_refused() const;
  const AgentOptions& options() const;
  rpc::Clock& clock() const;
  // Whether this thread is in a callback of the agent.
  bool in_callback() const;

  // Sent with the next heartbeat, for `cohort cluster status`.
  void set_figure(const std::string& name, double value);
  void drop_figure(const std::string& name);
  Figures figures() const;
  // Tells all other tasks, once this one has registered; they get it in on_error. Returns at once.
  void report(const std::exception_ptr& error);
  // The same, and waits until the service has it, so that the task may leave then.
  // Errors: DeadlineExceeded, Unavailable (the service cannot be reached); what ended the
  // membership.
  void report(const std::exception_ptr& error, Duration timeout);
  // Compares sections that were not there at the start; returns warnings.
  // Errors: FailedPrecondition (names the first difference).
  std::vector<std::string> declare(const std::vector<Section>& program,
                                   Duration timeout = std::chrono::seconds(10));
  // Ends the membership in good order. Does not throw: a task that cannot say goodbye is gone, too.
  void leave(const std::string& where, Duration timeout = std::chrono::seconds(2)) noexcept;
  // No callbacks after it, unless it is called from one. The task is lost to others unless it left.
  void stop();

  // Errors: DeadlineExceeded (names who has not come), Unavailable (a task of the list is lost or
  // has left), Aborted (the group has changed), InvalidArgument (the lists of two tasks differ).
  void barrier(const std::string& name, const BarrierOptions& options = {});
  // Waits for the key. Errors: DeadlineExceeded.
  std::string get(const std::string& key, Duration timeout);
  // Nothing where there is no such key.
  std::optional<std::string> find(const std::string& key);
  // Errors of these: InvalidArgument (the key), ResourceExhausted (limits of the store).
  void set(const std::string& key, const std::string& value, const StoreOptions& options = {});
  // The sum. Errors: FailedPrecondition (the value is no number), OutOfRange.
  int64_t add(const std::string& key, int64_t delta, const StoreOptions& options = {});
  // Whether the value was `expected` (nothing: there was none) and now is `value`.
  bool compare_and_set(const std::string& key, const std::optional<std::string>& expected,
                       const std::string& value, const StoreOptions& options = {});
  bool remove(const std::string& key, const StoreOptions& options = {});
  // All keys that begin with `prefix`.
  std::vector<std::string> list(const std::string& prefix);

  // The same without waiting: `done` is called once, on any thread.
  using Done = std::function<void(std::exception_ptr, const StoreReply&)>;
  void start_barrier(const std::string& name, const BarrierOptions& options, Done done);
  // `method`: "get", "set", "add", "compare_and_set", "remove" or "list".
  void start_store(std::string_view method, StoreRequest request, Duration timeout, Done done);
  void start_leave(const std::string& where, Duration timeout, std::function<void()> done);

 private:
  std::shared_ptr<AgentCore> core_;
};

}  // namespace cohort::internal::membership
