// The state behind a CoordinationService, and the rules by which its parts act on each other.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cohort/cluster/membership/answered_requests.h"
#include "cohort/cluster/membership/barriers.h"
#include "cohort/cluster/membership/coordination_options.h"
#include "cohort/cluster/membership/program.h"
#include "cohort/cluster/membership/roster.h"
#include "cohort/cluster/membership/store.h"
#include "cohort/cluster/membership/waiting_calls.h"
#include "cohort/core/function_ref.h"

namespace cohort::internal::membership {

// Timers and calls refer to it weakly, so it may end while some are under way.
// Thread safety: any thread.
class CoordinationCore : public std::enable_shared_from_this<CoordinationCore> {
 public:
  using Time = rpc::Clock::Time;

  CoordinationCore(rpc::Clock& clock, CoordinationOptions options);

  // Once, after construction: shared_from_this works then.
  void start();
  void handle(size_t method, std::unique_ptr<rpc::Call> call);
  void stop();
  void connection_lost(const Session& session);
  void process_gone(const Session& session);
  void absent(const TaskId& task);
  // Ends the group for all, with this error.
  void fail(const std::exception_ptr& error);
  View status() const;
  int64_t stale_refused() const;

 private:
  using Reply = std::optional<std::string>;  // nothing: the call waits
  using CallPtr = std::unique_ptr<rpc::Call>;
  // Says whether the caller of a get or barrier waits no longer.
  using Gone = std::shared_ptr<const std::atomic<bool>>;

  // Runs `work(out)` under the lock, draws the consequences, and then answers.
  void change(FunctionRef<void(Outbox&)> work);

  Gone watch_caller(rpc::Call& call);
  void drop_gone();

  Reply dispatch(size_t method, CallPtr& call, const Gone& gone, Outbox& out);
  Reply register_task(const Session& session, CallPtr& call, Outbox& out);
  Reply watch(const Session& session, CallPtr& call, Outbox& out);
  Reply attend(const Session& session, CallPtr& call, Outbox& out);
  Reply barrier(const Session& session, CallPtr& call, const Gone& gone, Outbox& out);
  Reply use_store(size_t method, const Session& session, CallPtr& call, const Gone& gone,
                  Outbox& out);
  Reply get(const Session& session, const StoreRequest& request, CallPtr& call, const Gone& gone);
  std::string change_store(size_t method, const Session& session, const StoreRequest& request,
                           Outbox& out);
  void check_program(const TaskId& task, const RegisterRequest& request);
  std::string accepted(const TaskId& task, const std::vector<Section>& program, Outbox& out);

  // Tells all whom the change concerns.
  void settle(Outbox& out);
  void settle_ended(Outbox& out);
  void settle_registrations(Outbox& out);
  void settle_watches(Outbox& out);
  void break_rounds(const std::vector<Barriers::Broken>& rounds, const std::exception_ptr& error,
                    Outbox& out);
  void answer_gets(const std::string& key, Outbox& out);
  void answer_due(Time now, Outbox& out);
  void answer_barrier_in_time(uint64_t id, Outbox& out);
  void watch_start(Time now, Outbox& out);
  void watch_agreement(Time now, Outbox& out);
  void on_timer(Time when);
  void arm(Time now);

  rpc::Clock& clock_;
  const CoordinationOptions options_;

  mutable std::mutex mutex_;
  Roster roster_;
  ProgramReference program_;
  Store store_;
  Barriers barriers_;
  WaitingCalls waiting_;
  AnsweredRequests answered_;
  int64_t version_told_ = 0;
  int64_t generation_settled_ = 0;
  bool start_logged_ = false;
  bool stopped_ = false;
  Time began_;
  Time next_report_;
  std::optional<Time> disagrees_since_;  // an elastic cluster's group, once it has started
  Time armed_ = Time::max();
};

}  // namespace cohort::internal::membership
