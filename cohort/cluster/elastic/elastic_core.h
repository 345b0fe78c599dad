// The state machine of an ElasticGroup.
//
// A call of form() goes through rounds. A round stands on one generation of the membership and on
// one record, the store's latest:
//   read the record -> propose -> list who has proposed -> the first of them: gather, judge, commit
// and a task that cannot go on waits for what is missing, and reads again. A new generation, or a
// call that fails, starts the next round.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/elastic/elastic_options.h"
#include "cohort/cluster/membership/agent.h"
#include "cohort/cluster/membership/serial_calls.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/core/function_ref.h"

namespace cohort::internal::elastic {

// How often the log says whom a call waits for.
inline constexpr Duration kReportEvery = std::chrono::seconds(10);

// Calls and timers refer to it weakly. Thread safety: any thread.
class ElasticCore : public std::enable_shared_from_this<ElasticCore> {
 public:
  using Time = rpc::Clock::Time;

  ElasticCore(membership::MembershipAgent& agent, ElasticOptions options);

  void form(const Standing& mine, Formed done);
  bool somebody_waits() const;
  void ask_to_form();
  std::optional<Record> current() const;
  bool must_form() const;
  bool is_formed() const;
  std::vector<TaskId> lost() const;
  void stop();

 private:
  using Answer = std::function<void(const membership::StoreReply&)>;

  // A call of form().
  struct Call {
    RecordMember mine;
    Formed done;
    Time began;
    Time heard;  // when the store answered last
    Time next_report;
    // The membership's generation, and since when this task is in it.
    uint64_t service = 0;
    int64_t generation = 0;
    Time since = {};
    // The tasks that are alive and have not proposed, whichever the generation; since when.
    std::map<TaskId, Time> missing = {};
    bool too_few = false;  // who has proposed with this program, although nobody is missing
    std::optional<Time> too_few_since = {};
  };
  // What a round stands on.
  struct Ground {
    membership::ViewPtr view;
    std::string stored = {};            // the record as it lies in the store; empty: there is none
    std::optional<Record> record = {};  // the same
    bool has_proposed = false;
    int looks = 0;  // how often this task has listed who has proposed
    std::vector<TaskId> proposers = {};
    std::vector<Proposal> gathered = {};
    size_t to_gather = 0;
  };

  // Runs `work` under the lock, and then, without the lock, the calls that it has left to do.
  void change(FunctionRef<void()> work);
  // A call to the store; `answer` runs under the lock if the round goes on. A call that fails ends
  // the round, and form() if it cannot succeed later.
  void ask(std::string_view method, membership::StoreRequest request, Duration timeout,
           Answer answer);
  void failed(const std::exception_ptr& error);
  // A call of which no answer is needed.
  void tell(std::string_view method, membership::StoreRequest request);
  void wake_after(Duration delay, std::function<void()> work);

  // Rounds: elastic_rounds.cc.
  void tick();
  void tick_later();
  void end_round();
  void begin_round(const membership::ViewPtr& view);
  void read();
  void have_read(const membership::StoreReply& reply);
  void learn(const Record& record);
  // Whether this call of form() ends with that record, or waits for the view in which it was made.
  bool take(const Record& record);
  void propose();
  void knock(bool leaves);
  void list(std::string after);
  void have_listed();
  void gather();
  void judge_gathered();
  void commit(const Record& next);
  void wait_for(std::string key, Duration at_most);
  void finish(std::exception_ptr error, Record record);
  void fail(std::exception_ptr error) { finish(std::move(error), {}); }

  // How long a call waits, and for whom.
  void set_missing(const std::vector<TaskId>& tasks);
  void check_limits();
  void check_missing(Time now);
  void check_count(Time now);
  void report(Time now);
  void refuse(const std::string& program);
  void let_go(size_t stay);
  bool joins() const;
  // How long proposals of those are waited for whom no survivor knows.
  Duration left_to_settle() const;
  std::string who_is_gone() const;

  // The task that waits for the members to form.
  void watch();
  void watched(const std::exception_ptr& error, const membership::StoreReply& reply,
               int64_t number);

  std::string key(std::string_view kind) const;
  std::string proposals_key() const;
  int64_t base() const { return ground_->record ? ground_->record->number : 0; }

  membership::MembershipAgent& agent_;
  rpc::Clock& clock_;
  const ElasticOptions options_;
  const TaskId self_;
  const uint64_t incarnation_;
  membership::SerialCalls calls_;

  mutable std::mutex mutex_;
  bool stopped_ = false;
  bool ticking_ = false;
  int64_t last_attempt_ = 0;
  std::optional<Call> call_;
  std::optional<Ground> ground_;
  uint64_t round_ = 0;           // answers of earlier rounds are dropped
  std::string proposed_;         // the key of this task's last proposal
  std::optional<Record> known_;  // the latest of which this task knows
  std::optional<Record> current_;
  bool knocked_ = false;   // a key of this task says that it waits
  int64_t waited_at_ = 0;  // the number of the current record, if somebody waits
  std::string last_waiter_;
};

}  // namespace cohort::internal::elastic
