// The state machine of a MembershipAgent.
//
// registering -> member -> ended. A member that has lost the service, and may wait, stays a member.
// If the service that answers again does not know it, it first leaves its generation and then
// registers, so that it never obeys two coordinators.
//
// In an elastic cluster it searches first, for the task that holds the service (agent_search.cc).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/membership/agent_options.h"
#include "cohort/cluster/membership/serial_calls.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/threads/backoff.h"

namespace cohort::internal::membership {

inline int64_t seconds_in(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

// Calls and timers refer to it weakly. Thread safety: any thread.
class AgentCore : public std::enable_shared_from_this<AgentCore> {
 public:
  using Time = rpc::Clock::Time;
  using Answer = std::function<void(rpc::CallResult)>;
  // What a request says about itself each time that it is sent.
  struct Attempt {
    Duration at_most;     // for the service to wait
    uint64_t id = 0;      // of the request: the same each time
    uint64_t oldest = 0;  // of the requests of its method that have no answer yet
  };
  using Encode = std::function<std::string(const Attempt&)>;

  AgentCore(rpc::Clock& clock, std::shared_ptr<rpc::Channel> channel, AgentOptions options);

  void start();
  void stop();
  void leave(const std::string& where, Duration timeout, std::function<void()> done);
  // `timeout`: as long as the task itself would be waited for, without one. A task that goes when
  // it has left or reported something (with a timeout) does not wait for a service that it knows to
  // be lost.
  void report(const std::exception_ptr& error, std::optional<Duration> timeout, Answer done);
  void set_figure(const std::string& name, double value);
  void drop_figure(const std::string& name);
  Figures figures() const;
  // A call that is repeated while the service cannot be reached. `done` is called once, at the
  // latest when `timeout` has passed.
  void request(std::string method, Encode encode, Duration timeout, Answer done);

  // Waits until `ready(view)`; null if `timeout` passes first. Throws what ends the agent.
  ViewPtr wait(std::optional<Duration> timeout, FunctionRef<bool(const ViewPtr&)> ready);

  ViewPtr view() const;
  int64_t generation() const;
  std::exception_ptr error() const;
  Standing standing() const;
  // The generation to which a request is bound. Errors: Aborted (an elastic cluster's task is
  // between two groups).
  int64_t bound_generation() const;
  void check(const rpc::Caller& caller);
  int64_t stale_refused() const;
  bool in_callback() const { return callbacks_.runs_here(); }
  const AgentOptions& options() const { return options_; }
  rpc::Clock& clock() const { return clock_; }

 private:
  static constexpr Duration kReportEvery = std::chrono::seconds(10);
  static constexpr Duration kFirstSearch = std::chrono::milliseconds(5);
  static constexpr Duration kLongestSearch = std::chrono::milliseconds(250);

  enum class State { kIdle, kSearching, kRegistering, kMember, kEnded };
  struct Request {
    std::string method;
    Encode encode;
    Time deadline;
    Backoff pauses;
    Answer done;
    std::optional<Time> failed_since = std::nullopt;
    uint64_t sent_to = 0;  // the service; 0: not sent yet
  };

  // Runs `work` under the lock, and then, without the lock, the actions that it has left to do.
  void change(FunctionRef<void()> work);
  void later(std::function<void()> action) { todo_.push_back(std::move(action)); }
  void log(std::string line);
  void wake_after(Duration delay, std::function<void(Time when)> work);
  // The same, unless this agent has registered anew or ended meanwhile.
  void after(Duration delay, std::function<void(Time when)> work);
  // Starts a call once the lock is free; `answer` runs under it, unless this agent has registered
  // anew or ended meanwhile.
  void call(std::string_view method, std::string control, Duration timeout, Answer answer);
  void call_at(const std::shared_ptr<rpc::Channel>& channel, std::string_view method,
               std::string control, Duration timeout, Answer answer);

  void send_register();
  void registered(rpc::CallResult result);
  void retry_register(const std::exception_ptr& error);
  void send_heartbeat();
  void beat(Time when);
  void send_watch();
  void send_attend();
  void watched(uint64_t number, rpc::CallResult result);
  void apply(View view);
  void act_in(int64_t generation, const ViewPtr& view);
  // Asks for the view that a caller already knows, unless it is being asked for.
  void catch_up();
  // Why the caller is refused, nothing if it is not.
  std::exception_ptr refusal_of(const rpc::Caller& caller) const;
  void watch_refused(const std::exception_ptr& error);
  void tell(const ViewPtr& view);
  // What a failed heartbeat or watch means.
  void failed(const std::exception_ptr& error);
  void look_soon(Duration delay);
  void look_again();
  void service_lost();
  void heard_now();
  void register_anew();
  // Leaves its generation and the service, before it turns to another one.
  void leave_service(State next);
  // What only tasks of elastic clusters do (agent_search.cc):
  bool is_elastic() const { return options_.elastic.has_value(); }
  void search();
  void ask_around();
  void told_standing(uint64_t round, const TaskId& task, const std::optional<Standing>& standing);
  void decide_where(bool is_complete);
  void search_failed(const std::string& why);
  void apply_elastic(View view);
  bool holder_is_dead() const;
  void end(std::exception_ptr error);

  uint64_t oldest_of(const std::string& method) const;
  void attempt(uint64_t id);
  void attempted(uint64_t id, rpc::CallResult result);
  void finish(uint64_t id, rpc::CallResult result);

  Duration jittered(Duration delay);
  std::string service_name() const;

  rpc::Clock& clock_;
  std::shared_ptr<rpc::Channel> channel_;  // to the service; guarded by mutex_
  const AgentOptions options_;
  SerialCalls callbacks_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<void()>> todo_;
  State state_ = State::kIdle;
  bool leaving_ = false;
  uint64_t epoch_ = 0;  // a new one with each registration; answers of earlier ones are dropped
  uint64_t service_ = 0;
  HeartbeatSettings heartbeat_;
  ViewPtr view_;
  int64_t acting_ = 0;
  int64_t term_seen_ = 0;
  int64_t generation_seen_ = 0;
  int64_t version_ = 0;  // of the last view of this service
  // The last view that a task of an elastic cluster has had in a group, which it may not have told
  // its users yet; and what had happened by then.
  ViewPtr record_;
  std::vector<Event> untold_;
  uint64_t search_round_ = 0;
  size_t standings_awaited_ = 0;
  std::map<TaskId, Standing> standings_;
  Backoff search_pauses_{kFirstSearch, kLongestSearch};
  bool searches_on_ = false;  // since it was last in a group
  uint64_t watch_ = 0;        // the number of the last watch
  bool watching_ = false;
  bool catching_up_ = false;
  std::optional<Time> watch_refused_since_;
  bool attending_ = false;
  Time began_;  // to register
  Time next_report_;
  Time heard_;  // the service's last answer
  std::optional<Time> trouble_since_;
  bool looking_ = false;            // look_again is due
  bool waits_for_service_ = false;  // which is lost; the log says so
  std::exception_ptr last_failure_;
  Backoff register_pauses_{options_.first_retry, options_.longest_retry};
  uint64_t random_ = 0;
  std::exception_ptr error_;
  Figures figures_;
  int64_t stale_refused_ = 0;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Request> requests_;
};

}  // namespace cohort::internal::membership
